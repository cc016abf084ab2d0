"""The publisher of a quantised checkpoint, as its configuration states it.

    hf_quant_config.json   {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
    config.json            {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}
    config.json            {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}

The tensors of ModelOpt's MXFP8 have the names, types and shapes of those of compressed-tensors, and those of its FP8
have the ones of AutoFP8, so only the configuration decides.
"""

from __future__ import annotations

import json
from typing import Final

from cute_py.formats.stored_weights import CONVENTIONS

_PUBLISHERS: Final = {row.name for row in CONVENTIONS}
_STATED: Final = (("producer", "name"), ("quantization_config", "quant_method"), ("quantization", "quant_algo"))
"""Parts of a configuration and their keys; only ModelOpt writes the last one."""
_SCHEMES: Final = ("static", "dynamic")
"""Values of AutoFP8's activation_scheme."""


def configured_publisher(text: str) -> str | None:
    """Return the convention that a hf_quant_config.json or a config.json names; None if it names none of `CONVENTIONS`.

    Source:
        ModelOpt 0.47.0, torch/export/unified_export_hf.py (older files have no producer); vLLM,
        model_executor/layers/quantization/modelopt.py, reads both. AutoFP8, auto_fp8/quantize.py, save_quantized_model:
        quant_method "fp8" with an activation_scheme; only checkpoints in blocks have a weight_block_size.

    >>> configured_publisher('{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}')
    'modelopt'
    >>> configured_publisher('{"quantization_config": {"quant_method": "compressed-tensors"}}')
    'compressed-tensors'
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = []
    for part, key in _STATED:
        inner = config.get(part) if isinstance(config, dict) else None
        value = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(value, str):
            found.append("modelopt" if key == "quant_algo" else value)
            if value == "fp8" and inner.get("activation_scheme") in _SCHEMES and not inner.get("weight_block_size"):
                found.append("autofp8")
    return next((name for name in found if name in _PUBLISHERS), None)
