"""Blocks through the Python references of FlashInfer, TransformerEngine (as FlashInfer mirrors it) and DeepGEMM.

    python tests/oracle/record/format_variants.py OUT.npz FLASHINFER DEEPGEMM [SEED]

FLASHINFER and DEEPGEMM are checkouts: tests/test_helpers/utils_fp4.py and deep_gemm/utils/math.py are loaded by
themselves, with what they import of their packages replaced. Needs torch.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np


def _module(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def flashinfer(root: Path) -> Any:
    """The helper module, with the two names that it takes from the package."""
    for name in ("flashinfer", "flashinfer.quantization", "flashinfer.quantization.nvfp4_quantization_utils"):
        sys.modules[name] = types.ModuleType(name)
    of_package: Any = sys.modules["flashinfer.quantization.nvfp4_quantization_utils"]
    of_package.NVFP44Over6Config = of_package.NVFP44Over6ErrMode = object
    of_package.nvfp4_e4m3_max = lambda _: 448.0
    utils: Any = types.ModuleType("flashinfer.utils")
    sys.modules["flashinfer.utils"] = utils
    whole: Any = sys.modules["flashinfer"]
    whole.utils = utils
    return _module("utils_fp4", root / "tests" / "test_helpers" / "utils_fp4.py")


def main(path: str, flashinfer_root: str, deepgemm_root: str, seed: int) -> None:
    import torch

    sys.path.insert(0, str(Path(__file__).parent))
    blocks = _module("blocks_of", Path(__file__).parent / "formats.py").blocks
    x = np.clip(blocks(128, seed, special=False), -1e18, 1e18)
    tensor = torch.from_numpy(x)
    amax = tensor.abs().max()
    module = flashinfer(Path(flashinfer_root))
    made: dict[str, Any] = {"x": x}
    values, scale = module.ref_fp4_quant_te(tensor, amax)
    made["te_d"], made["te_s"] = values.float().numpy(), scale.float().numpy()
    values, scale = module.ref_fp4_quant(tensor, (448 * 6 / amax).float(), 16)
    made["flashinfer_d"], made["flashinfer_s"] = values.numpy(), scale.numpy()
    deepgemm = _module("deepgemm_math", Path(deepgemm_root) / "deep_gemm" / "utils" / "math.py")
    wide = torch.from_numpy(np.ascontiguousarray(x.reshape(-1, 128)))
    data, scale = deepgemm.per_token_cast_to_fp8(wide, False)
    made["deepgemm_d"], made["deepgemm_s"] = data.view(torch.uint8).numpy(), scale.numpy()
    np.savez_compressed(path, **made)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 1)
