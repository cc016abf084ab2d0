"""Block-scaled formats in PyTorch: operators for torch.compile, and conversions between ScaledTensor and torchao's
tensors.

    import torch, cute_py.torch            registers torch.ops.cute_py.quantize and the other operators
    from cute_py.torch import quantize     the operators as functions

This package imports torch only when one of these names is first used. The operators are registered then, or when this
package is imported after torch.
"""

import importlib
import sys

from cute_py.deprecations import no_such_name

_HOME = {
    "cute_py.torch.operators": (
        "quantize dequantize convert_scaled gather_rows scatter_rows_ relayout OPERATORS scaled_of operands_of"
    ),
    "cute_py.torch.arrays": "as_numpy as_torch",
    "cute_py.torch.torchao_tensors": "to_torchao from_torchao scaled_mm_operands",
}
_NAMES = {name: module for module, names in _HOME.items() for name in names.split()}

if "torch" in sys.modules:
    from cute_py.torch.operators import register

    register()


def __getattr__(name: str) -> object:
    if name in _NAMES:
        from cute_py.torch.operators import register

        register()
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise no_such_name("cute_py.torch", name, __dir__())


def __dir__() -> list[str]:
    return sorted(_NAMES)
