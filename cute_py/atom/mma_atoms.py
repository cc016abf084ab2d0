"""Every MMA atom of CuTe, by its name in C++.

    mma_atom("SM90_64x128x16_F32BF16BF16_SS<K,MN>")      one atom
    MMA_ATOMS["SM80_16x8x16_F32F16F16F32_TN"]            the row of an operation
    find_mma_atoms(a="bfloat16", arch="sm90")            rows by their properties

The modules `mma_register_atoms`, `mma_warpgroup_atoms` and `mma_tensor_memory_atoms` generate the rows on first use;
the rows are then cached.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final

from cute_py.argument_checks import expect, expect_integer
from cute_py.atom.element_types import ElementType, SparseElement, element_type, stored_type
from cute_py.atom.mma_atom import MmaAtom, MmaOperation
from cute_py.atom.mma_register_atoms import register_operations
from cute_py.atom.mma_tensor_memory_atoms import WITHOUT_TRAITS, tensor_memory_operations
from cute_py.atom.mma_warpgroup_atoms import warpgroup_operations
from cute_py.atom.template_name import OperationRows, bind, expect_target, split_template
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given, nearest_names

_OUTER: Final = re.compile(r"^(::)?cute::")


@functools.cache
def _operations() -> dict[str, MmaOperation]:
    """Map the bare name of every operation to its row, in the order of CuTe's headers."""
    rows = (*register_operations(), *warpgroup_operations(), *tensor_memory_operations())
    return {row.name: row for row in rows if row.name not in WITHOUT_TRAITS}


@functools.cache
def _spellings() -> dict[str, MmaOperation]:
    """Map every name of an operation (bare, with namespace, C++'s aliases) to its row. Include rows without traits."""
    found: dict[str, MmaOperation] = {}
    for row in (*_operations().values(), *(r for r in tensor_memory_operations() if r.name in WITHOUT_TRAITS)):
        found[row.name] = row
        found[row.namespace + row.name] = row
        for alias in row.aliases:
            found.setdefault(alias, row)
    return found


def mma_operation(name: str) -> MmaOperation:
    """Return the operation with this name, which has no template arguments.

    Raises:
        InvalidValueError: the operation does not exist; the error lists the nearest names.

    >>> mma_operation("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS").family
    'sm90_gmma_sparse'
    """
    bare = _OUTER.sub("", expect(name, str, "the name of an operation"))
    spellings = _spellings()
    found = spellings.get(bare) or spellings.get(bare.rsplit("::", 1)[-1])
    if found is None:
        near = nearest_names(bare.rsplit("::", 1)[-1], _operations())
        text = f"CuTe has no MMA operation named {given(name)}"
        raise InvalidValueError(text, {"nearest": ", ".join(near)} if near else None)
    return found


@functools.lru_cache(maxsize=8192)
def _atom(name: str) -> MmaAtom:
    op, texts = split_template(name)
    return mma_operation(op).made(*texts)


def mma_atom(name: str | MmaAtom, *, arch: str | None = None) -> MmaAtom:
    """Make the atom of an operation from its name and template arguments.

    Args:
        name: the name in C++. Namespaces and trailing defaults may be omitted: `SM90_64x8x16_F16F16F16_SS` has A and B
            K-major, and `..._SS<K,MN>` changes the default. An atom is returned unchanged.
        arch: the target architecture, such as `sm_90a` or CuTe's `sm90`; default any.
    Raises:
        InvalidValueError: the operation does not exist, has another number of arguments or an unknown value, or the
            architecture lacks the instruction.
        StaticAssertError: C++ refuses these arguments; `condition` is the text of its static_assert.

    >>> print(mma_atom("SM90_64x128x16_F32BF16BF16_SS<K,MN>").name)
    SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K,GMMA::Major::MN,GMMA::ScaleIn::One,GMMA::ScaleIn::One>
    """
    if not isinstance(name, (str, MmaAtom)):
        raise InvalidTypeError(f"mma_atom takes the name of an operation, got {type(name).__name__} {given(name)}")
    found = name if isinstance(name, MmaAtom) else _atom(name)
    expect_target(found, arch)
    return found


@functools.lru_cache(maxsize=8192)
def _typical(name: str) -> MmaAtom:
    """Make the atom of an operation with its typical template arguments."""
    if name in WITHOUT_TRAITS:
        raise KeyError(name)
    operation = _spellings()[name]
    return operation.made(*operation.typical)


MMA_ATOMS: Final[Mapping[str, MmaAtom]] = OperationRows("MMA_ATOMS", _operations, _typical)
"""C++'s operation name -> its row; templates with typical arguments.

    >>> len(MMA_ATOMS), MMA_ATOMS["SM75_8x8x16_S32S8S8S32_TN"].arch
    (2255, 'sm75')
"""


def find_mma_atoms(
    *,
    a: Any = None,
    b: Any = None,
    c: Any = None,
    arch: str | None = None,
    family: str | None = None,
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    sparse: bool | None = None,
) -> list[MmaAtom]:
    """Find the atoms with these properties; an omitted property matches everything.

    Args:
        a, b, c: element types (for a sparse A, the type of the stored elements).
        arch: `sm90`, `sm_90` or `sm_90a`: the architecture that introduced the operation.
        family: `sm80`, `sm90_gmma`, `sm100_umma`, ...
        m, n, k: extents of one instruction.
        sparse: whether A is sparse.
    Returns:
        Atoms in the order of CuTe's headers. A template is instantiated with typical arguments and the requested types.
    Raises:
        InvalidValueError: a type, architecture or family is unknown. InvalidTypeError: `sparse` is not a bool.

    >>> [atom.op for atom in find_mma_atoms(a="bfloat16", arch="sm80")]
    ['SM80_16x8x8_F32BF16BF16F32_TN', 'SM80_16x8x16_F32BF16BF16F32_TN']
    """
    rows = [row for row in _operations().values() if _matches_name(row, arch, family)]
    if not rows:
        archs = sorted({row.arch for row in _operations().values()})
        families = sorted({row.family for row in _operations().values()})
        facts = {"architectures": ", ".join(archs), "families": ", ".join(families)}
        raise InvalidValueError(f"CuTe has no MMA operation for {given(arch or family)}", facts)
    wanted = {x: element_type(t) for x, t in (("A", a), ("B", b), ("C", c)) if t is not None}
    extents = [None if x is None else expect_integer(x, "an extent of an MMA", 1) for x in (m, n, k)]
    sparse = None if sparse is None else expect(sparse, bool, "sparse")
    found = []
    for row in rows:
        atom = _typical_with(row, wanted)
        if atom is None or any(stored_type(atom.types[x]) != t for x, t in wanted.items()):
            continue
        if any(e is not None and e != s for e, s in zip(extents, atom.shape_mnk, strict=True)):
            continue
        if sparse is None or sparse == isinstance(atom.a_dtype, SparseElement):
            found.append(atom)
    return found


def _matches_name(row: MmaOperation, arch: str | None, family: str | None) -> bool:
    if arch is not None:
        number = re.fullmatch(r"(?:sm_?)?(\d+)[af]?|any", expect(arch, str, "an architecture"))
        if number is None or row.arch != (f"sm{number[1]}" if number[1] else "any"):
            return False
    return family is None or row.family == expect(family, str, "a family")


def _typical_with(row: MmaOperation, wanted: Mapping[str, ElementType]) -> MmaAtom | None:
    """Make the atom with typical arguments, and with the wanted types where they are parameters. None if C++ refuses
    them."""
    values = bind(row.name, row.parameters, row.typical)
    for operand, element in wanted.items():
        for name in (f"{operand.lower()}_type", operand):
            if name in values:
                values[name] = element
    if "a_type" in values and "A" in wanted and "B" not in wanted and row.family.endswith("umma"):
        values["b_type"] = values["a_type"]
    try:
        return row.build(row, values)
    except StaticAssertError:
        return None
