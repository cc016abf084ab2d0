"""Emit planned copies as text: a trace like TIRx's, and CUDA C++ with inline PTX and literal offsets.

If a copy has several instructions, the trace of the older planner shows them as a loop `T.unroll`, as the tcgen05_cp
page does; all other output lists them.

A descriptor is encoded once and reused. The older planner (`compat="reference"`) encodes one descriptor per shared
buffer and (ldo, sdo, swizzle), with the address of the buffer. The newer planner encodes one per (ldo, sdo, swizzle),
with address 0, and inserts the start address at each use.
"""

from __future__ import annotations

from cute_py.argument_checks import expect, expect_expression
from cute_py.atom.smem_descriptor import ADDRESS_MASK, START_MASK
from cute_py.errors import InvalidValueError, given
from cute_py.ptx.render import mnemonic
from cute_py.tmem.copy_request import CopyAsync

__all__ = ["device_functions", "emit_cuda", "emit_tirx", "ptx_line"]

DESCRIPTOR = "cp_desc"

SHARED_ADDRESS = """\
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
"""

ENCODE = f"""\
// `fields` is the descriptor at address 0; the start address goes to its bits 0-13, in 16-byte units.
__device__ __forceinline__ unsigned long long encode_matrix_descriptor(unsigned address, unsigned long long fields) {{
  return fields | ((address & 0x{ADDRESS_MASK:X}u) >> 4);
}}
"""

ADD_OFFSET = """\
// Adds to the low 32 bits only: nothing carries into the upper half.
__device__ __forceinline__ unsigned long long smem_desc_add_16B_offset(unsigned long long descriptor, unsigned offset) {
  unsigned low = static_cast<unsigned>(descriptor) + offset;
  return (descriptor & 0xFFFFFFFF00000000ull) | low;
}
"""

REPLACE_START = f"""\
__device__ __forceinline__ unsigned long long replace_start_address(unsigned long long descriptor, unsigned address) {{
  return (descriptor & ~0x{START_MASK:X}ull) | ((address >> 4) & 0x{START_MASK:X}u);
}}
"""


def _checked(copies: tuple[CopyAsync, ...]) -> tuple[CopyAsync, ...]:
    return tuple([expect(copy, CopyAsync, "a copy") for copy in copies])


Key = tuple[str, int, int, int]


def _cache_key(copy: CopyAsync) -> Key:
    """Return the cache key of a copy's descriptor: the buffer (for the older planner only) and the fields."""
    plan = copy.plan
    return (copy.src.name if plan.compat == "reference" else "", plan.ldo, plan.sdo, plan.swizzle)


def _encodings(copies: tuple[CopyAsync, ...]) -> dict[Key, tuple[str, CopyAsync]]:
    """Map the cache keys, in the order of first use, to (the descriptor's variable, the first copy that uses it)."""
    found: dict[Key, tuple[str, CopyAsync]] = {}
    for copy in copies:
        variable = f"{DESCRIPTOR}_{len(found)}" if found else DESCRIPTOR
        found.setdefault(_cache_key(copy), (variable, copy))
    return found


def _cp_mnemonic(copy: CopyAsync) -> str:
    """Return the instruction of a copy, such as `tcgen05.cp.cta_group::1.32x128b.warpx4`."""
    form = copy.plan.form
    group = f"cta_group::{copy.plan.cta_group}"
    return mnemonic("tcgen05.cp", cta_group=group, shape=form.shape, multicast=form.multicast)


def ptx_line(copy: CopyAsync) -> str:
    """Return the instruction of a copy with its two operands, in the syntax of inline assembly.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> ptx_line(demonstration_copy())
    'tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;'
    """
    _checked((copy,))
    return f"{_cp_mnemonic(copy)} [%0], %1;"


def emit_tirx(*copies: CopyAsync) -> str:
    """Return the TIRx trace of one or more copies, without the commit and the wait.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> print(emit_tirx(demonstration_copy()).splitlines()[-1])
                     shape="32x128b", cta_group=1, multicast="warpx4")
    """
    held = _encodings(_checked(copies))
    lines = []
    for variable, first in held.values():
        at = f"T.address_of({first.src.name}[0])" if first.plan.compat == "reference" else "0"
        fields = f"{first.plan.ldo}, {first.plan.sdo}, {int(first.plan.swizzle)}"
        lines.append(f"T.ptx.tcgen05.encode_matrix_descriptor({variable}.data, {at}, {fields})")
    for copy in copies:
        variable, form, tiles = held[_cache_key(copy)][0], copy.plan.form, copy.plan.tiles
        address = f"{copy.dst.allocated_addr.name if copy.dst.allocated_addr else 'tmem_addr'}[0]"
        multicast = f', multicast="{form.multicast}"' if form.multicast else ""
        if copy.plan.compat == "reference":
            column, start = tiles[0].taddr_offset, tiles[0].smem_offset
            taddr, offset, indent = f"{address} + {column}" if column else address, str(start), ""
            if len(tiles) > 1:
                steps = [(tile.taddr_offset - column, tile.smem_offset - start) for tile in tiles]
                lines.append(f"compute_offsets = {steps}.__getitem__  # flat -> columns, units of 16 bytes")
                lines.append(f"for flat in T.unroll({len(tiles)}):")
                lines.append("    t_off, s_off = T.meta_var(compute_offsets(flat))")
                taddr, offset, indent = f"{taddr} + t_off", f"{start} + s_off" if start else "s_off", "    "
            lines.append(f"{indent}T.ptx.tcgen05.cp({taddr},")
            lines.append(f"{indent}                 smem_desc_add_16B_offset({variable}[0], {offset}),")
            lines.append(f'{indent}                 shape="{form.shape}", cta_group={copy.plan.cta_group}{multicast})')
            continue
        for tile in tiles:
            taddr = f"{address} + {tile.taddr_offset}" if tile.taddr_offset else address
            source = f"T.cvta_generic_to_shared({copy.src.name} + {tile.smem_offset * 16}) >> 4 & {START_MASK:#x}"
            lines.append(f'T.ptx["{_cp_mnemonic(copy)}"]({taddr},')
            lines.append(f"    {variable}[0] & ~{START_MASK:#x} | {source})")
    return "\n".join(lines)


def _function_name(copy: CopyAsync) -> str:
    """Return the name of the device function that issues a copy's instruction.

    `tcgen05.cp.cta_group::1.32x128b.warpx4` becomes `tcgen05_cp_cta_group_1_32x128b_warpx4`.
    """
    return _cp_mnemonic(copy).replace("::", "_").replace(".", "_")


def _cp_function(copy: CopyAsync) -> str:
    """Return the source of the device function with the inline PTX of one form."""
    return (
        f"__device__ __forceinline__ void {_function_name(copy)}(unsigned taddr, unsigned long long descriptor) {{\n"
        f'  asm volatile("{ptx_line(copy)}" ::"r"(taddr), "l"(descriptor) : "memory");\n'
        "}\n"
    )


def device_functions(*copies: CopyAsync) -> str:
    """Return the source of the device functions that these copies call, each once.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> print(device_functions(demonstration_copy()).splitlines()[0])
    __device__ __forceinline__ unsigned shared_address(const void* pointer) {
    """
    compats = {copy.plan.compat for copy in _checked(copies)}
    parts = [SHARED_ADDRESS, ENCODE]
    parts += [ADD_OFFSET] if "reference" in compats else []
    parts += [REPLACE_START] if compats - {"reference"} else []
    parts += dict.fromkeys(_cp_function(copy) for copy in copies)
    return "\n".join(parts)


def emit_cuda(*copies: CopyAsync, taddr: str = "tmem_addr", indent: str = "") -> str:
    """Return the CUDA C++ statements that encode the descriptors and issue the copies, unrolled, in the order of issue.

    Args:
        taddr: the C++ expression for the allocated tensor-memory address.
        indent: the string before each line.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> print(emit_cuda(demonstration_copy()).splitlines()[-1])
    tcgen05_cp_cta_group_1_32x128b_warpx4(tmem_addr + 0x0u, smem_desc_add_16B_offset(cp_desc, 0u));
    """
    held = _encodings(_checked(copies))
    expect_expression(taddr, "taddr")
    if expect(indent, str, "indent").strip(" \t"):
        raise InvalidValueError(f"indent = {given(indent)}; must be blanks")
    lines = []
    for variable, first in held.values():
        at = f"shared_address({first.src.name})" if first.plan.compat == "reference" else "0u"
        value = f"0x{first.plan.descriptor():016X}ull"
        lines.append(f"unsigned long long {variable} = encode_matrix_descriptor({at}, {value});")
    for copy in copies:
        variable = held[_cache_key(copy)][0]
        for tile in copy.plan.tiles:
            if copy.plan.compat == "reference":
                descriptor = f"smem_desc_add_16B_offset({variable}, {tile.smem_offset}u)"
            else:
                source = f"shared_address({copy.src.name}) + {tile.smem_offset * 16}u"
                descriptor = f"replace_start_address({variable}, {source})"
            lines.append(f"{_function_name(copy)}({taddr} + 0x{tile.taddr_offset:X}u, {descriptor});")
    return "\n".join(indent + line for line in lines) + "\n"
