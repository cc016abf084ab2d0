"""CUDA C++ for planned copies: the device functions with inline PTX, and the calls with literal offsets."""

from __future__ import annotations

from cute_py.argument_checks import expect, expect_expression
from cute_py.errors import InvalidValueError, given
from cute_py.tmem.copy_async import CopyAsync
from cute_py.tmem.emit_tirx import cache_key, cp_mnemonic, encodings, ptx_line
from cute_py.tmem.matrix_descriptor import ADDRESS_MASK, START_MASK

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
// Adds to the low 32 bits alone: nothing carries into the upper half.
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


def function_name(copy: CopyAsync) -> str:
    """The device function that issues the copy's instruction.

    `tcgen05.cp.cta_group::1.32x128b.warpx4` becomes `tcgen05_cp_cta_group_1_32x128b_warpx4`.
    """
    return cp_mnemonic(copy).replace("::", "_").replace(".", "_")


def cp_function(copy: CopyAsync) -> str:
    """The device function with the inline PTX of one form."""
    return (
        f"__device__ __forceinline__ void {function_name(copy)}(unsigned taddr, unsigned long long descriptor) {{\n"
        f'  asm volatile("{ptx_line(copy)}" ::"r"(taddr), "l"(descriptor) : "memory");\n'
        "}\n"
    )


def device_functions(*copies: CopyAsync) -> str:
    """Every device function that the calls of these copies need, once each."""
    for copy in copies:
        expect(copy, CopyAsync, "a copy")
    parts = [SHARED_ADDRESS, ENCODE]
    compats = {copy.plan.compat for copy in copies}
    parts += [ADD_OFFSET] if "seed" in compats else []
    parts += [REPLACE_START] if compats - {"seed"} else []
    parts += dict.fromkeys(cp_function(copy) for copy in copies)
    return "\n".join(parts)


def emit_cuda(*copies: CopyAsync, taddr: str = "tmem_addr", indent: str = "") -> str:
    """The statements that encode the descriptors and issue the copies, unrolled, in the order of issue.

    Args:
        taddr: the expression that holds the allocated tensor-memory address.
        indent: put before each line.
    """
    for copy in copies:
        expect(copy, CopyAsync, "a copy")
    expect_expression(taddr, "taddr")
    if expect(indent, str, "indent").strip(" \t"):
        raise InvalidValueError(f"indent = {given(indent)}; must be blanks")
    held = encodings(copies)
    lines = []
    for key, encoding in held.items():
        first = next(copy for copy in copies if cache_key(copy) == key)
        at = f"shared_address({encoding.buffer})" if key[0] else "0u"
        value = f"0x{first.plan.descriptor():016X}ull"
        lines.append(f"unsigned long long {encoding.variable} = encode_matrix_descriptor({at}, {value});")
    for copy in copies:
        variable = held[cache_key(copy)].variable
        for tile in copy.plan.tiles:
            if copy.plan.compat == "seed":
                descriptor = f"smem_desc_add_16B_offset({variable}, {tile.smem_offset}u)"
            else:
                source = f"shared_address({copy.src.name}) + {tile.smem_offset * 16}u"
                descriptor = f"replace_start_address({variable}, {source})"
            lines.append(f"{function_name(copy)}({taddr} + 0x{tile.taddr_offset:X}u, {descriptor});")
    return "\n".join(indent + line for line in lines) + "\n"
