"""Random operands through single instructions, on a device and on the machine.

    python -m benchmarks.machine.random_forms write FOLDER      PTX, cubin (by ptxas) and operands
    python -m benchmarks.machine.random_forms device FOLDER     runs the cubin through libcuda alone; writes device.bin
    python -m benchmarks.machine.random_forms compare FOLDER    runs the PTX on the machine; counts what differs

The second step needs a driver and nothing of this package but this file. Each kernel has one instruction: 64 bits of
three operands in for each thread, 64 bits out.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from pathlib import Path

ROWS = 10_240
THREADS = 256
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
REGISTER = {"16": "h", "32": "r", "64": ""}
FLOAT = {"f16": "h", "bf16": "h", "f16x2": "r", "bf16x2": "r", "f32": "f", "f64": "d"}
ROUNDINGS = ("rn", "rz", "rm", "rp")


def forms() -> list[str]:
    """The instructions, each with its operands in the registers of `tests.machine.forms.kernel`."""
    found = []
    for kind in INTEGERS:
        r = REGISTER[kind[1:]]
        found += [f"{op}.{kind} %{r}d, %{r}a, %{r}b;" for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max")]
        found += [f"{op}.{kind} %{r}d, %{r}a, %{r}b, %{r}c;" for op in ("mad.lo", "mad.hi", "sad")]
        found += [f"shr.{kind} %{r}d, %{r}a, %rb;", f"setp.lt.{kind} %p, %{r}a, %{r}b;"]
        found += [f"div.{kind} %{r}d, %{r}a, %{r}b;", f"rem.{kind} %{r}d, %{r}a, %{r}b;"] if r else []
    for kind in ("u32", "s32", "u64", "s64"):
        r = REGISTER[kind[1:]]
        found += [f"bfe.{kind} %{r}d, %{r}a, %rb, %rc;", f"bfind.{kind} %rd, %{r}a;"]
    for bits in ("32", "64"):
        r = REGISTER[bits]
        found += [f"{op}.b{bits} %rd, %{r}a;" for op in ("popc", "clz")] + [f"brev.b{bits} %{r}d, %{r}a;"]
        found += [f"bfi.b{bits} %{r}d, %{r}a, %{r}b, %rb, %rc;", f"shl.b{bits} %{r}d, %{r}a, %rb;"]
    found += [f"shf.{side}.{mode}.b32 %rd, %ra, %rb, %rc;" for side in "lr" for mode in ("wrap", "clamp")]
    found += [f"lop3.b32 %rd, %ra, %rb, %rc, {table};" for table in (0x96, 0xE8, 0xCA)]
    found += [f"prmt.b32{mode} %rd, %ra, %rb, %rc;" for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")]
    found += [f"dp4a.{a}32.{b}32 %rd, %ra, %rb, %rc;" for a in "us" for b in "us"]
    for mode in ROUNDINGS:
        found += [f"{op}.{mode}{m}.f32 %fd, %fa, %fb;" for op in ("add", "mul", "div") for m in ("", ".ftz")]
        found += [f"fma.{mode}{m}.f32 %fd, %fa, %fb, %fc;" for m in ("", ".ftz", ".sat")]
        found += [f"{op}.{mode}.f64 %dd, %da, %db;" for op in ("add", "mul", "div")]
        found += [f"fma.{mode}.f64 %dd, %da, %db, %dc;"]
        found += [f"{op}.{mode}.f32 %fd, %fa;" for op in ("rcp", "sqrt")]
        found += [f"{op}.{mode}.f64 %dd, %da;" for op in ("rcp", "sqrt")]
    for kind, r in FLOAT.items():
        found += [f"{op}.{kind} %{r}d, %{r}a, %{r}b;" for op in ("min", "max")]
        found += [f"{op}.{kind} %{r}d, %{r}a;" for op in ("abs", "neg")]
        if "16" in kind:
            found += [f"{op}.rn.{kind} %{r}d, %{r}a, %{r}b;" for op in ("add", "sub", "mul")]
            found += [f"fma.rn{m}.{kind} %{r}d, %{r}a, %{r}b, %{r}c;" for m in ("", ".relu")]
            found += [f"{op}.NaN.{kind} %{r}d, %{r}a, %{r}b;" for op in ("min", "max")]
    for compare in ("eq", "ne", "lt", "ge", "equ", "ltu", "num", "nan"):
        found += [f"setp.{compare}.f32 %p, %fa, %fb;", f"setp.{compare}.f64 %p, %da, %db;"]
    return [*found, *conversions(), *approximations()]


def conversions() -> list[str]:
    """cvt between the types of sm_90."""
    found = []
    for source, target in itertools.product(INTEGERS, INTEGERS):
        r, s = REGISTER[source[1:]], REGISTER[target[1:]]
        narrower, other = int(target[1:]) < int(source[1:]), target[0] != source[0]
        narrows = narrower or (other and (target[0] == "u" or target[1:] == source[1:]))
        found += [f"cvt{sat}.{target}.{source} %{s}d, %{r}a;" for sat in ("", *([".sat"] if narrows else []))]
    for source, target in itertools.product(("f16", "f32", "f64"), INTEGERS):
        r, s = FLOAT[source], REGISTER[target[1:]]
        found += [f"cvt.{mode}i.{target}.{source} %{s}d, %{r}a;" for mode in ROUNDINGS]
        found += [f"cvt.{mode}.{source}.{target} %{r}d, %{s}a;" for mode in ROUNDINGS]
    found += [f"cvt.{mode}.f32.f64 %fd, %da;" for mode in ROUNDINGS] + ["cvt.f64.f32 %dd, %fa;"]
    found += [f"cvt.{mode}.{kind}.f32 %hd, %fa;" for mode in ("rn", "rz") for kind in ("f16", "bf16")]
    found += ["cvt.f32.f16 %fd, %ha;", "cvt.f32.bf16 %fd, %ha;", "cvt.rna.tf32.f32 %rd, %fa;"]
    found += [f"cvt.{mode}i.f32.f32 %fd, %fa;" for mode in ROUNDINGS]
    found += [f"cvt.rn{m}.{kind}.f32 %rd, %fa, %fb;" for kind in ("f16x2", "bf16x2") for m in ("", ".relu")]
    for kind in ("e4m3x2", "e5m2x2"):
        found += [f"cvt.rn.satfinite{m}.{kind}.f32 %hd, %fa, %fb;" for m in ("", ".relu")]
        found += [f"cvt.rn.satfinite.{kind}.f16x2 %hd, %ra;", f"cvt.rn.f16x2.{kind} %rd, %ha;"]
    return found


def approximations() -> list[str]:
    """What is rounded correctly on the machine alone: the distance is reported, not equality."""
    found = [
        f"{op}.approx{m}.f32 %fd, %fa;"
        for op in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
        for m in ("", ".ftz")
    ]
    return [*found, "tanh.approx.f32 %fd, %fa;", "div.approx.f32 %fd, %fa, %fb;", "div.full.f32 %fd, %fa, %fb;"]


def write(folder: Path) -> None:
    """PTX of all kernels, the cubin, and operands: bits of all kinds, and floats near each other."""
    import numpy as np

    from cute_py.ptx.module import assemble_module
    from tests.machine.forms import DONE, kernel

    texts = []
    for number, form in enumerate(forms()):
        name = form.split("%", 1)[1].split(",")[0].split("|")[0].strip()
        text = kernel(f"{form} {DONE[name]}").split(".address_size 64\n")[1]
        texts.append(text.replace(".entry k(", f".entry k{number}("))
    source = ".version 8.7\n.target sm_90a\n.address_size 64\n" + "".join(texts)
    (folder / "forms.ptx").write_text(source)
    accepted, log, cubin = assemble_module(source, "sm_90a")
    if not accepted:
        raise SystemExit(log)
    (folder / "forms.cubin").write_bytes(cubin)
    dice = np.random.default_rng(1)
    rows = dice.integers(0, 1 << 64, (3, ROWS), np.uint64)
    quarter = ROWS // 4
    near = (dice.standard_normal((3, quarter)) * 2.0 ** dice.integers(-8, 9, (3, quarter))).astype(np.float32)
    rows[:, :quarter] = near.view(np.uint32)
    rows[:, quarter : 2 * quarter] = dice.standard_normal((3, quarter)).view(np.uint64)
    halves = dice.standard_normal((3, 4 * quarter)).astype(np.float16).view(np.uint64)
    rows[:, 2 * quarter : 3 * quarter] = halves
    rows[1:, -quarter // 2 :] &= np.uint64(0x3F)
    (folder / "operands.bin").write_bytes(rows.tobytes())
    (folder / "count.txt").write_text(str(len(texts)))


def device(folder: Path) -> None:
    """Run the cubin through the driver."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        code = getattr(cuda, name)(*arguments)
        if code:
            raise SystemExit(f"{name}: CUDA error {code}")

    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), (folder / "forms.cubin").read_bytes())
    operands = (folder / "operands.bin").read_bytes()
    size = 8 * ROWS
    pointers = [ctypes.c_uint64() for _ in range(4)]
    for place, pointer in enumerate(pointers):
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        if place < 3:
            call("cuMemcpyHtoD_v2", pointer, operands[place * size : (place + 1) * size], ctypes.c_size_t(size))
    listed = (ctypes.c_void_p * 4)(*[ctypes.addressof(pointer) for pointer in pointers])
    with open(folder / "device.bin", "wb") as out:
        for number in range(int((folder / "count.txt").read_text())):
            function = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(function), module, f"k{number}".encode())
            call("cuLaunchKernel", function, ROWS // THREADS, 1, 1, THREADS, 1, 1, 0, None, listed, None)
            call("cuCtxSynchronize")
            held = ctypes.create_string_buffer(size)
            call("cuMemcpyDtoH_v2", held, pointers[3], ctypes.c_size_t(size))
            out.write(held.raw)


def compare(folder: Path) -> None:
    """Run the PTX on the machine, and print the forms whose results differ."""
    import numpy as np

    from cute_py import run_ptx

    text = (folder / "forms.ptx").read_text()
    a, b, c = np.frombuffer((folder / "operands.bin").read_bytes(), np.uint64).reshape(3, ROWS)
    path = folder / "device.bin"
    known = np.frombuffer(path.read_bytes(), np.uint64).reshape(-1, ROWS) if path.exists() else None
    for number, form in enumerate(forms()):
        out = np.zeros(ROWS, np.uint64)
        run = run_ptx(text, kernel=f"k{number}", grid=ROWS // THREADS, args=[a, b, c, out], schedule="eager")
        run.raise_for_diagnostics()
        if known is None:
            continue
        wrong = np.flatnonzero(out != known[number])
        if len(wrong):
            first = wrong[0]
            far = np.abs(out.view(np.int64)[wrong] - known[number].view(np.int64)[wrong]).max()
            given = ", ".join(f"{int(x[first]):#x}" for x in (a, b, c))
            said = f"{len(wrong)} of {ROWS} differ, at most by {far}; ({given}): {int(out[first]):#x}"
            print(f"{form} {said}, device {int(known[number][first]):#x}")


if __name__ == "__main__":
    {"write": write, "device": device, "compare": compare}[sys.argv[1]](Path(sys.argv[2]))
