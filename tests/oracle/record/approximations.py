"""Record the approximate functions of a GPU on 65,536 operands each: every pattern of the upper 16 bits.

    python -m tests.oracle.record.approximations OUT.npz

Needs cuda-python and a GPU. `operands()` makes the operands again anywhere; the file holds the results alone.
"""

from __future__ import annotations

import sys

import numpy as np

FUNCTIONS = (
    "ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "lg2.approx.ftz.f32", "rcp.approx.f32",
    "rcp.approx.ftz.f32", "rsqrt.approx.f32", "rsqrt.approx.ftz.f32", "sqrt.approx.f32", "sqrt.approx.ftz.f32",
    "sin.approx.f32", "sin.approx.ftz.f32", "cos.approx.f32", "cos.approx.ftz.f32", "tanh.approx.f32",
    "ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16", "ex2.approx.f16x2",
    "tanh.approx.bf16x2", "div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32",
    "rcp.approx.ftz.f64", "rsqrt.approx.f64",
)  # fmt: skip
"""Those of sm_90, as PTX writes them."""

COUNT = 1 << 16


def operands(function: str) -> tuple[np.ndarray, np.ndarray]:
    """(first, second) operands as words of 64 bits; the second is used by divisions alone.

    >>> operands("div.full.f32")[1].shape
    (65536,)
    """
    generator = np.random.Generator(np.random.PCG64(FUNCTIONS.index(function)))
    low = generator.integers(0, 1 << 16, (2, COUNT), dtype=np.uint64)
    high = np.stack([np.arange(COUNT, dtype=np.uint64), generator.permutation(COUNT).astype(np.uint64)])
    if function.endswith("f64"):
        return tuple((high << np.uint64(48)) | generator.integers(0, 1 << 48, (2, COUNT), dtype=np.uint64))
    if function.endswith(("x2", "f32")):
        return tuple((high << np.uint64(16)) | low)
    return tuple(high)


def program(function: str, count: int = COUNT) -> str:
    """PTX whose thread i applies the function to operand i of `count`."""
    kind = function.rsplit(".", 1)[1]
    bits = 64 if kind == "f64" else 16 if kind in ("f16", "bf16") else 32
    second = ", %b" if function.startswith("div") else ""
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry f(.param .u64 source, .param .u64 target)
{{
  .reg .b64 %in, %out, %lane, %x, %y;
  .reg .b32 %t, %c;
  .reg .b{bits} %a, %b, %r;
  ld.param.u64 %in, [source];
  ld.param.u64 %out, [target];
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.u32 %t, %c, 256, %t;
  mul.wide.u32 %lane, %t, 8;
  add.s64 %in, %in, %lane;
  add.s64 %out, %out, %lane;
  ld.global.b64 %x, [%in];
  ld.global.b64 %y, [%in+{8 * count}];
  {"mov.b64 %a, %x;" if bits == 64 else f"cvt.u{bits}.u64 %a, %x;"}
  {"mov.b64 %b, %y;" if bits == 64 else f"cvt.u{bits}.u64 %b, %y;"}
  {function} %r, %a{second};
  {"mov.b64 %x, %r;" if bits == 64 else f"cvt.u64.u{bits} %x, %r;"}
  st.global.b64 [%out], %x;
  ret;
}}
"""


def main() -> None:
    from tests.oracle.record import random_programs as device

    device._start()
    driver, check = device.DRIVER, device._check
    found = {}
    for function in FUNCTIONS:
        try:
            loaded = check(driver.cuModuleLoadData(program(function).encode() + b"\0"))
        except RuntimeError as error:
            print(function, error)
            continue
        words = np.concatenate(operands(function))
        out = np.zeros(COUNT, np.uint64)
        source, target = check(driver.cuMemAlloc(words.nbytes)), check(driver.cuMemAlloc(out.nbytes))
        check(driver.cuMemcpyHtoD(source, words.ctypes.data, words.nbytes))
        a, b = np.array([int(source)], np.uint64), np.array([int(target)], np.uint64)
        pointers = np.array([a.ctypes.data, b.ctypes.data], np.uint64)
        entry = check(driver.cuModuleGetFunction(loaded, b"f"))
        check(driver.cuLaunchKernel(entry, COUNT // 256, 1, 1, 256, 1, 1, 0, 0, pointers.ctypes.data, 0))
        check(driver.cuCtxSynchronize())
        check(driver.cuMemcpyDtoH(out.ctypes.data, target, out.nbytes))
        kind = function.rsplit(".", 1)[1]
        found[function] = out if kind == "f64" else out.astype(np.uint16 if kind in ("f16", "bf16") else np.uint32)
    np.savez_compressed(sys.argv[1], **found)
    print(len(found), "functions")


if __name__ == "__main__":
    main()
