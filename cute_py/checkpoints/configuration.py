"""Write the config.json of a converted checkpoint, with the `quantization_config` of compressed-tensors or ModelOpt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cute_py.errors import FileFormatError
from cute_py.formats.stored_weights import Convention


def converted_configuration(text: str, row: Convention | None, kept: Sequence[str]) -> str:
    """Return a config.json with the `quantization_config` of a convention, or without one if the convention is None.

    Args:
        text: the config.json of the source. row: the convention, or None. kept: names of weights that were not
            converted.
    Raises:
        FileFormatError: the text is not a JSON object.

    >>> converted_configuration('{"model_type": "llama", "quantization_config": {}}', None, [])
    '{\\n  "model_type": "llama"\\n}\\n'
    """
    try:
        config = json.loads(text)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        raise FileFormatError("config.json is not a JSON object")
    config.pop("quantization_config", None)
    modules = sorted(name.removesuffix(".weight") for name in kept)
    if row is not None and row.name == "compressed-tensors":
        config["quantization_config"] = _compressed_tensors(row, modules)
    elif row is not None and row.name == "modelopt":
        size = {"group_size": row.block} if row.block else {}
        config["quantization_config"] = {
            "quant_method": "modelopt", "quant_algo": row.algorithm, **size, "ignore": modules,
        }  # fmt: skip
    return json.dumps(config, indent=2) + "\n"


def _compressed_tensors(row: Convention, modules: Sequence[str]) -> dict[str, Any]:
    """Return the `quantization_config` of compressed-tensors. It quantises only weights, so activations have no
    scheme."""
    weights: dict[str, Any] = {
        "num_bits": 4 if row.element == "e2m1" else 8,
        "type": "float",
        "symmetric": True,
        "dynamic": False,
        "strategy": ("tensor_group" if row.total else "group") if row.block else "channel",
    }
    if row.block:
        weights["group_size"] = row.block
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "format": row.algorithm}
    return {
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "format": row.algorithm,
        "config_groups": {"group_0": group},
        "ignore": list(modules),
    }
