"""Block-scaled formats in JAX: functions that work under jit through a callback to the host.

    import jax, cute_py.jax
    data, scales, tensor_scale = jax.jit(cute_py.jax.quantize, static_argnums=1)(x, "mxfp8()")

This package imports jax when one of its functions is first used.
"""

import importlib

from cute_py.deprecations import no_such_name

_NAMES = ("quantize", "dequantize", "convert_scaled", "gather_rows", "scatter_rows", "relayout", "scaled_of")


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module("cute_py.jax.functions"), name)
    raise no_such_name("cute_py.jax", name, __dir__())


def __dir__() -> list[str]:
    return sorted(_NAMES)
