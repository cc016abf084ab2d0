"""Stages 6 and 7 of a TMA copy: PTX text that assembles, and the machine code if a disassembler is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cute_py.errors import DeviceError
from cute_py.tma.lower.architectures import NEWEST_VERSION, Version, version_text
from cute_py.tma.lower.assembler import assemble_module, find_ptxas
from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.render import ptx
from cute_py.tma.lower.stages_tile import names_of

SASS_OPCODES: dict[str, str] = {
    "load": "UTMALDG",
    "store": "UTMASTG",
    "reduce": "UTMAREDG",
    "prefetch": "UTMAPF",
    "bulk.load": "UBLKCP",
    "bulk.store": "UBLKCP",
}
"""Form -> the machine instruction that it becomes. Source: CUDA Binary Utilities 13.0, Hopper instruction set."""

_CLASSES = (("rd", "b64"), ("r", "b32"), ("h", "b16"), ("p", "pred"))


def _instruction(shape: CopyShape, coords: list[str], address: str, arch: str | None) -> str:
    """The instruction for one box, on lines of its own with comments."""
    n = names_of(shape)
    operands: dict[str, object] = {"tensor": f"%rd_desc_{n.small}", "coords": coords}
    modifiers: dict[str, object] = {"dim": shape.rank, "mode": shape.mode, "cache_hint": shape.cache_hint}
    if shape.cache_hint:
        operands["policy"] = "%rd_policy"
    if shape.direction == "load":
        operands |= {"destination": address, "barrier": "%rd_mbar"}
        modifiers |= {"multicast": shape.multicast > 1, "cta_group": shape.cta_group or None}
        if shape.multicast > 1:
            operands["mask"] = "%h_mask"
        im2col = shape.mode.startswith("im2col")  # without numbers the offsets are registers
        if shape.im2col_offsets:
            operands["offsets"] = shape.im2col_offsets
        comments = ["destination: SMEM address of tile", "source: descriptor + coords (inner-axis first)"]
        comments.append("completion barrier address")
        comments += ["im2col offsets"] * im2col + ["multicast mask"] * (shape.multicast > 1)
    else:
        operands["source"] = address
        if shape.direction == "reduce":
            modifiers["op"] = shape.reduce_kind
        comments = ["destination: descriptor + coords (inner-axis first)", "source: SMEM address of tile"]
    comments += ["L2 cache policy"] * shape.cache_hint
    form = shape.direction
    text = ptx(form, operands=operands, arch=arch, **modifiers)  # type: ignore[arg-type]
    mnemonic, tail = text.rstrip(";").split(" ", 1)
    parts = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s]+", tail)
    lines = [mnemonic]
    for index, (part, comment) in enumerate(zip(parts, comments, strict=True)):
        lines.append(f"{part}{';' if index == len(parts) - 1 else ','} // {comment}")
    return "\n".join(lines)


def stage6_text(shape: CopyShape, arch: str | None = None) -> str:
    """The PTX of one tile: the byte expectation as a literal, then one instruction per box.

    Raises:
        EmissionError: `arch` does not have the instruction.
    """
    n = names_of(shape)
    lines = []
    title = {"load": "load", "store": "store", "reduce": f"reduce ({shape.reduce_kind})"}[shape.direction]
    if shape.direction == "load":
        lines += [
            f"// ---- mbarrier publishes the {shape.transaction_bytes}-byte expectation",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], {shape.transaction_bytes};",
        ]
    else:
        lines += [
            "// ---- writes of the tile become visible to the asynchronous proxy",
            "fence.proxy.async.shared::cta;",
        ]
    base = "%rd_smem_dst" if shape.direction == "load" else "%rd_smem_src"
    names = [f"%r_{coord[1:]}" for coord in n.inner_first(shape)]
    for box in range(shape.num_boxes):
        coords = []
        for name, start in zip(names, shape.instruction_origin(box), strict=True):
            if start:
                lines.append(f"add.s32 {name}_{box}, {name}, {start};")
            coords.append(f"{name}_{box}" if start else name)
        address = base
        if shape.box_offset(box):
            address = f"{base}_{box}"
            lines.append(f"add.s64 {address}, {base}, {shape.box_offset(box)};")
        which = f", box {box} of {shape.num_boxes}" if shape.num_boxes > 1 else ""
        lines.append(f"// ---- TMA bulk-tensor {shape.rank}D {title}{which}")
        lines.append(_instruction(shape, coords, address, arch))
    if shape.direction != "load":
        lines += ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"]
    return "\n".join(lines)


def wait_text(parity: str = "%r_parity") -> str:
    """The consumer's wait: it releases when the phase flips, that is when all arrivals and all bytes are in."""
    return "\n".join(
        [
            "$wait:",
            f"mbarrier.try_wait.parity.shared::cta.b64 %p_done, [%rd_mbar], {parity};",
            "@!%p_done bra $wait;",
        ]
    )


def module_of(text: str, arch: str, version: Version = NEWEST_VERSION) -> str:
    """A PTX module around a piece of text: every register in it is declared by the prefix of its name."""
    names = sorted(set(re.findall(r"%(\w+)", text)))
    declared = []
    for name in names:
        found = next((bits for prefix, bits in _CLASSES if re.fullmatch(rf"{prefix}(_\w+|\d+)", name)), None)
        if found is not None:
            declared.append(f".reg .{found} %{name};")
    body = "\n".join([*declared, text])
    return (
        f".version {version_text(version)}\n.target {arch}\n.address_size 64\n"
        f".visible .entry lowered()\n{{\n{body}\nret;\n}}\n"
    )


def find_disassembler() -> Path | None:
    """nvdisasm, else cuobjdump, on PATH; None if neither is there."""
    for name in ("nvdisasm", "cuobjdump"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    return None


def stage7_text(text: str, arch: str, form: str) -> tuple[str, tuple[str, ...]]:
    """The machine code of stage 6's text, and notes: disassembled if the tools are there, else what is expected.

    Raises:
        DeviceError: ptxas is there and refuses the text.
    """
    notes = (f"expected machine instruction: {SASS_OPCODES[form]} (CUDA Binary Utilities)",)
    disassembler = find_disassembler()
    if disassembler is None or find_ptxas() is None:
        return "// not disassembled: needs ptxas and one of nvdisasm, cuobjdump on PATH", notes
    accepted, messages, cubin = assemble_module(module_of(text, arch), arch)
    if not accepted:
        raise DeviceError("ptxas refuses the text of stage 6", {"arch": arch, "ptxas": messages})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lowered.cubin"
        path.write_bytes(cubin)
        options = ["-c"] if disassembler.name == "nvdisasm" else ["-sass"]
        done = subprocess.run([str(disassembler), *options, str(path)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip(), notes
