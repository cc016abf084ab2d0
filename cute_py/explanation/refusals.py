"""The long form of an error: the rule that was broken, why there is such a rule, who says so, and what to do.

Why each kind of error exists, and what to do in general: one row for each class of `cute_py.errors`.

Why the layout algebra has no result for some operands: the conditions that CuTe C++ asserts, and what to do.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Final

from cute_py.errors import CuteError, RaceError, TmaTrap, TmaVerifyError, WouldHangError
from cute_py.explanation.reason import Reason
from cute_py.explanation.reasons_of_copies import (
    GBASIS_REASONS,
    HANG_REASON,
    MAP_REASONS,
    RACE_REASONS,
    TRAP_REASONS,
    VERIFIER_REASONS,
)
from cute_py.explanation.wording import filled, listed

CLASS_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "CuteError",
        "One root, so that a program can catch what this library refuses on purpose and nothing else.",
        "Read the headline, which is the rule with the value; compare the facts; the hint, if there is one, works.",
    ),
    Reason(
        "InvalidTypeError",
        "A float, a bool or a text as a size is mostly a mistake that would show much later.",
        "Convert the argument; sizes, strides and coordinates are Int, int, numpy or sympy integers.",
    ),
    Reason(
        "InvalidValueError",
        "The type is right and the value has no meaning here.",
        "Take a value that the headline names.",
    ),
    Reason(
        "LayoutError",
        "Not every operation of the algebra has a result for every pair of layouts.",
        "Look at steps(operation, ...) for the mode that has none.",
    ),
    Reason(
        "StaticAssertError",
        "CuTe C++ would refuse to compile this; a result here would be one that no kernel can have.",
        "Find the modes that do not divide in the facts, and change the tile or the shape that is tiled; write sizes "
        "that must be static as Int(8).",
    ),
    Reason(
        "CoordinateError",
        "A coordinate has the profile of the shape, or of a coarser one; another profile addresses nothing.",
        "Give one entry for each mode (nested where the mode is), or a single index.",
    ),
    Reason(
        "CompositionMismatchError",
        "composition(A, B) may differ from A(B(i)) where B's steps do not divide A's modes; CuTe C++ says nothing.",
        "Change the tile so that its sizes divide the modes of A, or leave strict out to get C++'s result.",
    ),
    Reason(
        "ParseError",
        "The text is not one that CuTe prints.",
        "Look at the character at `position`; str() of any object of this library can be parsed.",
    ),
    Reason(
        "TensorAccessError",
        "A bare pointer says where elements would be, and there is no memory behind it here.",
        "Make the tensor over an array (make_tensor(numpy_array)), or ask the layout for offsets.",
    ),
    Reason(
        "TmaError",
        "The root of everything between a tensor and a TMA copy.",
        "Look at the class that was raised; it names the stage.",
    ),
    Reason(
        "GBasisError",
        "One instruction moves one box; some pairs of tile and shared layout have no box in common.",
        "Read `condition`, CuTe's own; explain(error) tells it apart, explain(atom) shows the stages of one that "
        "works.",
    ),
    Reason(
        "TmaLimitError",
        "The driver returns CUDA_ERROR_INVALID_VALUE and not a word more; all broken rules are told here at once.",
        "Go through `violations`; find_fixes and the hint propose tiles and swizzles that were tried.",
    ),
    Reason(
        "TmaVerifyError",
        "The verifier asks eleven questions in a fixed order and stops at the first that fails.",
        "Read `step`; STEPS has its name, and explain(error) its reason.",
    ),
    Reason(
        "TmaBuildError",
        "A builder, a binding or a lowering entry point was given operands that its reference page does not take.",
        "The headline is the page's own diagnostic: compare the operands with what it names.",
    ),
    Reason(
        "UnknownFactError",
        "What was neither documented nor measured is not guessed: a wrong bit of a map moves wrong bytes silently.",
        "Let the driver of such a GPU encode it (cute_py.tma.driver_encode), or stay with what is known.",
    ),
    Reason(
        "TmaTrap",
        "On a GPU this ends the CUDA context with an error that names neither the instruction nor the rule.",
        "Read `cause`; explain(error) tells the rule. The emulator raises it before anything is lost.",
    ),
    Reason(
        "WouldHangError",
        "A barrier that waits for bytes that never come stops a kernel for ever, without a word.",
        "Compare `expected` with `arrived`: announce atom.transaction_bytes for each tile.",
    ),
    Reason(
        "RaceError",
        "An asynchronous copy that is read or overwritten too early is wrong now and then, on some machines.",
        "Put the wait, fence or group that the rule names between the two.",
    ),
    Reason(
        "EmissionError",
        "ptxas would refuse the instruction, or the architecture does not have it.",
        "Take a form and an architecture of the table CAPABILITIES; `why` says which part does not exist.",
    ),
    Reason(
        "TmemError",
        "A tcgen05.cp moves fixed shapes to fixed lanes; not every pair of layouts is one of them.",
        "The text names the requirement; FORMS has the shapes, plan_form tells which one a tile takes.",
    ),
    Reason(
        "DeviceError",
        "Something that only a machine has is missing, or failed: GPU, driver, compiler, a launch.",
        "`cute-py doctor` tells what is there, what is not, and why; everything but the run itself works without.",
    ),
    Reason(
        "FileFormatError",
        "A file can't be read as the tensor, or written as the picture, that was asked for.",
        "Check name, ending and shape; the text says which of them.",
    ),
    Reason(
        "MissingPackageError",
        "The core needs numpy and sympy only; other packages are for single features.",
        "Install the extra that the hint names.",
    ),
)


_CUTE = "cute/layout.hpp"

LAYOUT_REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "Stride Divisibility Condition",
        "A o B walks through the modes of A in steps of B's stride. A step beyond a mode must be whole turns "
        "of it; any "
        "other ends at another place of the mode each time, and no stride says that.",
        "Take a stride that is less than the mode's size, or a multiple of it; coalesce(A) may leave fewer modes.",
        f"{_CUTE}, composition",
    ),
    Reason(
        "Shape Divisibility Condition",
        "A o B takes B's elements from the modes of A one after the other: what the first mode gives (its "
        "size over the "
        "step, rounded up) must go into B's size whole times, or no shape says how often.",
        "Take a tile of at most what the mode gives, or a multiple of that: of (8,4) 6, 8, 16 or 24 in steps of 1, "
        "not 12; pad a mode that does not divide, and let the copy mask what hangs over.",
        f"{_CUTE}, composition",
    ),
    Reason(
        "Divisibility Condition",
        "Shapes are divided mode by mode, and a mode that is cut must be cut into equal parts.",
        "Take sizes of which one divides the other.",
        "cute/int_tuple.hpp, shape_div",
    ),
    Reason(
        "Divisibility condition",
        "N elements become one, so every stride must be a multiple of N, or N of the stride.",
        "Take a smaller N: max_alignment(layout) is the largest one that works.",
        f"{_CUTE}, upcast",
    ),
    Reason(
        "Static safe_div requires",
        "Both numbers are known when the program is compiled, so a rest would be an error there.",
        "Take sizes of which one divides the other.",
        "cute/numeric/math.hpp, safe_div",
    ),
    Reason(
        "Dynamic-stride complement",
        "The complement sorts the modes by stride, and strides that are known only at run time can't be sorted.",
        "Make the strides static with Int(...), or give each mode its own complement.",
        f"{_CUTE}, complement",
    ),
    Reason(
        "Downcast requires adjacent elements",
        "A wide element becomes several narrow ones side by side; that needs a mode of static stride 1 to hold them.",
        "Give the layout a static contiguous mode, Int(1), and downcast that.",
        f"{_CUTE}, downcast",
    ),
    Reason(
        "Mismatched",
        "The operation goes through both operands mode by mode, so they must have equally many.",
        "Give both the same number of modes; group_modes and flatten change it, append adds modes of size 1.",
        _CUTE,
    ),
    Reason(
        "abs(SShift) must be more than BBits",
        "A swizzle combines two groups of bits by XOR; groups that overlap would make it no permutation.",
        "Take |S| of at least B: Sw<3,4,3> is the widest of the engine.",
        "cute/swizzle.hpp",
    ),
    Reason(
        "tile_to_shape",
        "The block is repeated whole times along each mode.",
        "Take a shape that is a multiple of the block, or a smaller block.",
        f"{_CUTE}, tile_to_shape",
    ),
    Reason(
        "logical_divide: Too many modes",
        "A tiler has at most one entry for each mode of the layout.",
        "Drop the entries at the end, or group modes of the tiler into one entry.",
        f"{_CUTE}, logical_divide",
    ),
    Reason(
        "logical_product: Too many modes",
        "A tiler has at most one entry for each mode of the layout.",
        "Drop the entries at the end, or give the block more modes of size 1.",
        f"{_CUTE}, logical_product",
    ),
    Reason(
        "Unknown TMA Format!",
        "The engine moves elements of the formats of a tensor map only.",
        "Move the bits as a type of the same width: internal_dtype='uint16' for any 16-bit type.",
        "cute/arch/copy_sm90_desc.hpp, to_CUtensorMapDataType",
    ),
    Reason(
        "Unsupported layout swizzle",
        "The engine has four patterns: none, 32B, 64B and 128B, as XOR of bits of the byte address.",
        "Take a layout of make_smem_layout, or Sw<0|1|2|3,4,3> on bytes.",
        "cute/atom/copy_traits_sm90_tma_swizzle.hpp",
    ),
)
"""Key: how the condition begins."""


_VERIFIER_SOURCE = "the TMA Atoms reference page, the steps of the partition verifier"


def error_words(error: CuteError) -> str:
    """The text of an error, the rules behind it with their reasons, and its place in the tree.

    >>> print(error_words(CuteError("no")).splitlines()[0])
    CuteError: no
    """
    parts = [f"{type(error).__name__}: {error}"]
    found = reasons_of(error)
    parts += [_rule(title, reason, source) for title, reason, source in found]
    general = _by_class(type(error))
    if not found and general is not None:
        parts.append(_rule("", general, ""))
    return "\n\n".join([*parts, _about(type(error))])


def error_class_words(kind: type[CuteError]) -> str:
    """What a class of errors means, why there is such a class, what to do, and the rules that raise it."""
    parts = [kind.__name__, inspect.getdoc(kind) or ""]
    general = _by_class(kind)
    if general is not None:
        parts.append(_rule("", general, ""))
    parts += _rules_of(kind)
    return "\n\n".join([*[part for part in parts if part], _about(kind)])


def reasons_of(error: CuteError) -> list[tuple[str, Reason, str]]:
    """(the rule in its own words, its reason, its source) of each rule that an error tells; empty if none is known."""
    out = []
    for violation in getattr(error, "violations", ()):
        reason = _named(MAP_REASONS, getattr(violation, "rule", ""))
        if reason is not None:
            out.append((f"{violation.argument}: it must {violation.requirement}", reason, violation.source))
    if out:
        return out
    if isinstance(error, TmaVerifyError):
        reason = _named(VERIFIER_REASONS, str(error.step))
        return [] if reason is None else [(f"step {error.step}, {_step_name(error.step)}", reason, _VERIFIER_SOURCE)]
    if isinstance(error, TmaTrap):
        return _one(TRAP_REASONS, error.cause)
    if isinstance(error, RaceError):
        return _one(RACE_REASONS, error.headline)
    if isinstance(error, WouldHangError) and HANG_REASON.key in error.headline:
        return [(error.headline, HANG_REASON, HANG_REASON.source)]
    if "barrier was not complete" in error.headline:
        return [(error.headline, HANG_REASON, HANG_REASON.source)]
    return _one((*GBASIS_REASONS, *LAYOUT_REASONS), error.headline)


def _one(rows: Sequence[Reason], text: str) -> list[tuple[str, Reason, str]]:
    reason = next((row for row in rows if text.startswith(row.key)), None)
    return [] if reason is None else [(text, reason, reason.source)]


def _named(rows: Sequence[Reason], key: str) -> Reason | None:
    return next((row for row in rows if row.key == key), None)


def _step_name(number: int) -> str:
    from cute_py.tma.dialect.verifier import STEPS

    return next((step.name for step in STEPS if step.number == number), "unknown")


def _by_class(kind: type) -> Reason | None:
    """The row of a class, or of the nearest one above it."""
    return next((row for name in [c.__name__ for c in kind.__mro__] if (row := _named(CLASS_REASONS, name))), None)


def _rule(title: str, reason: Reason, source: str) -> str:
    lines = [f"The rule: {title}"] if title else ["In general"]
    lines += [filled("  why    : ", reason.why), filled("  to do  : ", reason.fix)]
    return "\n".join([*lines, *([filled("  source : ", source)] if source else [])])


def _rules_of(kind: type[CuteError]) -> list[str]:
    """The rules that raise an error of this class, where they are a table."""
    from cute_py.tma.descriptor.limits import RULES

    tables: dict[str, tuple[str, list[tuple[str, str]]]] = {
        "TmaLimitError": ("The rules of a tensor map", [(rule.name, f"must {rule.requirement}") for rule in RULES]),
        "TmaVerifyError": ("The steps", [(row.key, _step_name(int(row.key))) for row in VERIFIER_REASONS]),
        "TmaTrap": ("The causes begin with", [(row.key, row.why) for row in TRAP_REASONS]),
        "RaceError": ("The rules", [(row.key, row.why) for row in RACE_REASONS]),
        "StaticAssertError": ("The conditions begin with", [(row.key, row.why) for row in LAYOUT_REASONS]),
        "GBasisError": ("The conditions", [(row.key, row.why) for row in GBASIS_REASONS]),
        "WouldHangError": ("The rule", [(HANG_REASON.key, HANG_REASON.why)]),
    }
    if kind.__name__ not in tables:
        return []
    title, rows = tables[kind.__name__]
    return [listed(title, rows)]


def _about(kind: type) -> str:
    words = " ".join((inspect.getdoc(kind) or "").split())
    parents = [c.__name__ for c in kind.__mro__[1:] if issubclass(c, Exception) and c is not Exception]
    caught = f"except {' or '.join(parents)} catches it as well." if parents else "It is the root of all of them."
    return "\n".join([filled("", f"About {kind.__name__}: {words}"), caught])
