"""Find all driver rules that a request breaks, with argument, value, unit and source."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import record
from cute_py.diagnostics import Diagnostic, Findings, Scope
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.expressions import RequestForm, instantiated, legal_form, low_32
from cute_py.tma.descriptor.limits import (
    BY_NAME,
    GPUS,
    RULES,
    Architecture,
    architecture,
    bounds,
    unknown_addition,
)
from cute_py.tma.descriptor.request import (
    HasRequest,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
    request_of,
)

if TYPE_CHECKING:
    from cute_py.tma.descriptor.expressions import Value

Violation = Diagnostic
"""Former name of the type of a broken rule."""


def broken_rule(
    name: str, argument: str, value: int, mode: int | None = None, detail: str = "", requirement: str = ""
) -> Diagnostic:
    """Make the diagnostic of a value that breaks the rule `rule`. The default requirement comes from `limits.RULES`.

    The message has an address in hexadecimal, as the driver and debuggers print it.

    >>> broken_rule("address_alignment", "globalAddress", 4104).message
    'globalAddress = 0x1008; must be a multiple of 16'
    """
    rule = BY_NAME[name]
    must = requirement or rule.requirement
    text = f"{argument} = {value:#x}; must {must}" if argument == "globalAddress" else ""
    return Diagnostic(name, argument, int(value), rule.unit, must, rule.source, mode, detail, text=text)


_WHOLE: Final = {arch: Scope((f"{len(RULES)} rules of tensor maps on {arch}",)) for arch in GPUS}
"""The scope of the judgement on a request whose bits are all known."""


def violations(request: TensorMap | HasRequest, *, arch: str = "sm_90a") -> Findings:
    """List the rules that a request breaks on a GPU; empty if the driver accepts it.

    The `scope` of the result lists the properties that were checked.

    Args:
        request: a request, or an object that holds one.
        arch: the GPU whose limits apply (`limits.ARCHITECTURES`). The limits of sm_90 were measured; the limits of
            later GPUs come from the documentation.
    Raises:
        InvalidTypeError: the object is not a request.
        InvalidValueError: the architecture is unknown.

    >>> [v.argument for v in violations(TensorMapTiled(6, 4096, (64, 8), (120,), (64, 300)))]
    ['globalStrides[0]', 'boxDim[1]']
    """
    request = request_of(request)
    gpu = (GPUS.get(arch) if isinstance(arch, str) else None) or architecture(arch)
    scope = _WHOLE[arch]
    if keeps_rules(request, gpu):
        return Findings.none(scope)
    unknown = unknown_addition(request)
    if unknown is not None:
        scope = Scope(scope.judged, (f"1 value: the bits of a tensor map that encode {unknown.name} are unknown",))
    return Findings(broken_rules(request, gpu), scope=scope)


def listed_violations(request: TensorMap | HasRequest, arch: str = "sm_90a") -> list[Diagnostic]:
    """Return the violations as a plain list without a scope, for functions that make maps."""
    request = request_of(request)
    gpu = (GPUS.get(arch) if isinstance(arch, str) else None) or architecture(arch)
    return [] if keeps_rules(request, gpu) else broken_rules(request, gpu)


_ANY_IM2COL: Final = (TensorMapIm2col, TensorMapIm2colWide)


@record
class RuleCheck:
    """One check: a value of a request, and the rule that it must satisfy.

    Its strings are expressions with the names that the module `expressions` defines.

    If `each` names tuples, there is one value for each index `i` that exists in all of them.
    """

    rule: str
    """Name in `limits.RULES`, which has the bounds."""
    argument: str
    """Name of the value in a message. Here, in `detail` and in `must`, text in braces is an expression."""
    value: str
    each: tuple[str, ...] = ()
    after: str = ""
    """Name of a tuple; the first `i` is its length."""
    kinds: tuple[type[TensorMap], ...] = (TensorMapTiled, *_ANY_IM2COL)
    when: tuple[str, ...] = ()
    """Conditions; the rule applies if all of them hold."""
    least: str | None = None
    most: str | None = None
    """Bounds that depend on the request or the GPU; they replace the bounds of the rule."""
    broken: str = ""
    """The condition for a broken rule, if no bound expresses it."""
    scale: int = 1
    """Units of the value per unit of the rule: 8 if the value counts bits and the rule counts bytes."""
    mode: str = "None"
    """The mode that breaks the rule, if there is one."""
    detail: str = ""
    must: str = ""
    """The requirement for this value; empty: the requirement of the rule."""
    rare: bool = False
    """True if the check passes for every map with a legal number of values, no residue and a format with known bits."""


_PACKED: Final = ("13 <= data_type", "data_type <= last_format")
_GAPPED: Final = ("13 < data_type", "data_type <= last_format")

CHECKS: Final[tuple[RuleCheck, ...]] = (
    RuleCheck("rank", "tensorRank", "rank", rare=True),
    RuleCheck("rank_im2col", "tensorRank", "rank", kinds=_ANY_IM2COL, when=("rank <= 5",), rare=True),
    RuleCheck(
        "rank_interleave",
        "tensorRank",
        "rank",
        kinds=(TensorMapTiled,),
        when=("0 < rank", "rank <= 5", "IS_SLICED[interleave]"),
    ),
    *(
        RuleCheck(
            "length",
            f"len({argument})",
            f"length_{name}",
            kinds=kinds,
            when=(f"{wanted} >= 0",),
            least=wanted,
            most=wanted,
            must=f"be {{{wanted}}} for this rank",
            rare=True,
        )
        for argument, name, wanted, kinds in (
            ("globalStrides", "global_strides", "rank - 1", (TensorMapTiled, *_ANY_IM2COL)),
            ("elementStrides", "element_strides", "rank", (TensorMapTiled, *_ANY_IM2COL)),
            ("boxDim", "box_dim", "rank", (TensorMapTiled,)),
            ("pixelBoxLowerCorner", "lower", "rank - 2", (TensorMapIm2col,)),
            ("pixelBoxUpperCorner", "upper", "rank - 2", (TensorMapIm2col,)),
        )
    ),
    RuleCheck("wide_mode", "mode", "mode", kinds=(TensorMapIm2colWide,)),
    RuleCheck("unknown_rank", "rank field", "rank_field ^ rank - 1", broken="rank_field", rare=True),
    RuleCheck(
        "unknown_format", "format field", "format_field", broken="is_decoded", when=("not has_format",), rare=True
    ),
    RuleCheck(
        "data_type",
        "tensorDataType",
        "-1",
        broken="not is_decoded",
        when=("not has_format",),
        detail="no format",
        rare=True,
    ),
    RuleCheck(
        "data_type",
        "tensorDataType",
        "data_type",
        when=("has_format",),
        most="last_format",
        must="{gpu.format_requirement}",
    ),
    RuleCheck(
        "nan_fill",
        "oobFill",
        "oob_fill",
        when=("oob_fill == 1", "data_type <= last_format"),
        broken="IS_INTEGER[data_type]",
        detail="with {FORMATS[data_type].data_type.name}",
    ),
    RuleCheck("interleave", "interleave", "interleave"),
    RuleCheck("swizzle", "swizzle", "swizzle", most="last_swizzle", must="{gpu.swizzle_requirement}"),
    RuleCheck("l2_promotion", "l2Promotion", "l2_promotion"),
    RuleCheck("oob_fill", "oobFill", "oob_fill"),
    RuleCheck("address_alignment", "globalAddress", "global_address", when=("interleave != 2",)),
    RuleCheck("address_alignment_interleave_32b", "globalAddress", "global_address", when=("interleave == 2",)),
    RuleCheck("address_range", "globalAddress", "global_address"),
    RuleCheck("size", "globalDim[{i}]", "global_dim[i]", ("global_dim",), mode="i"),
    *(
        RuleCheck(rule, "globalStrides[{i}]", "global_strides[i]", ("global_strides",), when=when, mode="i + 1")
        for rule, when in (
            ("stride_alignment", ("interleave != 2",)),
            ("stride_alignment_interleave_32b", ("interleave == 2",)),
            ("stride_range", ()),
        )
    ),
    RuleCheck(
        "element_stride",
        "elementStrides[{i}]",
        "element_strides[i]",
        ("element_strides",),
        when=("strided",),
        mode="i",
    ),
    RuleCheck("box", "boxDim[{i}]", "box_dim[i]", ("box_dim", "element_strides"), kinds=(TensorMapTiled,), mode="i"),
    RuleCheck("channels", "channelsPerPixel", "channels_per_pixel", kinds=_ANY_IM2COL),
    RuleCheck("pixels", "pixelsPerColumn", "pixels_per_column", kinds=_ANY_IM2COL),
    *(
        check
        for argument, kinds in (("boxDim[0]", (TensorMapTiled,)), ("channelsPerPixel", _ANY_IM2COL))
        for check in (
            RuleCheck(
                "inner_bytes",
                f"{argument} in bytes",
                "row_bits",
                kinds=kinds,
                when=("row > 0",),
                scale=8,
                mode="0",
                detail="{row} elements x {bits} bits",
            ),
            RuleCheck(
                "inner_span",
                f"{argument} in bytes",
                "row_bits",
                kinds=kinds,
                when=("interleave == 0", "swizzle <= last_swizzle", "SPAN[swizzle] > 0"),
                most="SPAN[swizzle]",
                scale=8,
                mode="0",
                must="be at most {SPAN[swizzle]} with swizzle {SPAN[swizzle]}B",
            ),
        )
    ),
    # The driver allows a box as large as the SM's shared memory, which no block can have, so the limit of a block is
    # more useful.
    RuleCheck(
        "box_bytes",
        "bytes of the box",
        "box_bits",
        most="shared_memory_bytes",
        scale=8,
        must="be at most {gpu.block_shared_memory_bytes}, the shared memory of a block on {gpu.name}",
    ),
    *(
        RuleCheck(
            "corner_range",
            f"pixelBox{name.capitalize()}Corner[{{i}}]",
            f"{name}[i]",
            (name,),
            kinds=_ANY_IM2COL,
            least="least corner",
            most="greatest corner",
            must="be {least_corner} to {greatest_corner} at rank {rank}",
        )
        for name in ("lower", "upper")
    ),
    RuleCheck(
        "bounding_box",
        "pixels of mode {first + i} after the first",
        low_32("spatial[i] - 1 + upper[i] - lower[i]"),
        ("spatial", "lower", "upper"),
        kinds=_ANY_IM2COL,
        mode="first + i",
        detail="{spatial[i]} - 1 + {upper[i]} - {lower[i]}",
    ),
    RuleCheck(  # a wide request bounds only W
        "wide_size",
        "globalDim[{first + i}] - 1",
        low_32("spatial[i] - 1"),
        ("spatial",),
        after="lower",
        kinds=_ANY_IM2COL,
        mode="first + i",
    ),
    # The packed formats of 4 and 6 bits: documented, not measured.
    RuleCheck(
        "packed_size_align8",
        "globalDim[0]",
        "global_dim[0]",
        ("mode 0",),
        when=("data_type == 13", *_PACKED),
        mode="0",
        rare=True,
    ),
    RuleCheck("packed_address", "globalAddress", "global_address", when=_GAPPED, rare=True),
    RuleCheck("packed_size", "globalDim[0]", "global_dim[0]", ("mode 0",), when=_GAPPED, mode="0", rare=True),
    RuleCheck(
        "packed_stride",
        "globalStrides[{i}]",
        "global_strides[i]",
        ("global_strides",),
        when=_GAPPED,
        mode="i + 1",
        rare=True,
    ),
    RuleCheck(
        "packed_box",
        "boxDim[0]",
        "row",
        kinds=(TensorMapTiled,),
        when=("length_box_dim > 0", *_GAPPED),
        mode="0",
        rare=True,
    ),
    RuleCheck("packed_box", "channelsPerPixel", "row", kinds=_ANY_IM2COL, when=_GAPPED, mode="0", rare=True),
    RuleCheck("packed_interleave", "interleave", "interleave", when=("data_type == 15", *_PACKED), rare=True),
    *(
        RuleCheck(
            "packed_swizzle",
            "swizzle",
            "swizzle",
            when=(f"data_type == {data_type}", *_PACKED),
            broken=f"swizzle not in {allowed}",
            must=f"be one of {str(allowed)[1:-1]} with {FORMATS[data_type].data_type.name}",
            rare=True,
        )
        for data_type, allowed in ((14, (0, 3, 4)), (15, (0, 3, 4, 6)))
    ),
)
"""The values that the rules judge, in the order of the list that `violations` returns."""


# ---- the table as functions ----------------------------------------------------------------------------------------


def _bound(form: RequestForm, text: str | None, number: int | None, scale: int) -> int | str | None:
    """Return a bound of a check: an integer if the form of the request determines it, otherwise an expression."""
    corners = dict(zip(("least corner", "greatest corner"), form.corner_bounds, strict=True))
    if text is None or text in corners:
        number = corners[text] if text is not None else number
        return None if number is None else number * scale
    return f"({text})" if scale == 1 else f"{scale} * ({text})"


def _settled(condition: str, known: Mapping[str, int]) -> str:
    """Substitute known values in a condition, and evaluate it to "True" or "False" if no other name is left."""
    text = re.sub(r"\b[a-z]\w*\b", lambda found: str(known.get(found[0], found[0])), condition)
    return text if re.search(r"\b[A-Za-z_]", text) else str(bool(eval(text)))


def _breaks(
    form: RequestForm, check: RuleCheck, values: Sequence[str], known: Mapping[str, int], *, strict: bool = False
) -> list[str]:
    """Return the conditions for one of the values to break the rule, apart from the conditions `when`.

    With `strict`, a condition may be an integer that is nonzero if the rule is broken. If the size of a range is a
    power of two, a legal value is 0 after its low bits are shifted out, so that one expression checks all values.
    """
    if not values:
        return []
    rule = BY_NAME[check.rule]
    least = _bound(form, check.least, rule.minimum, check.scale)
    most = _bound(form, check.most, rule.maximum, check.scale)
    parts, nonzero = [check.broken] if check.broken else [], "" if strict else " != 0"
    if not parts and isinstance(least, int) and isinstance(most, int) and (most - least) & (most - least + 1) == 0:
        above = " | ".join([f"{value} - {least}" if least else value for value in values])
        parts.append(f"({above}) >> {(most - least).bit_length()}{nonzero}")
    elif not parts and strict and least is not None and most is not None:
        parts += [f"not {least} <= {value} <= {most}" for value in values]
    elif not parts:
        parts += [f"{value} < {least}" for value in values if least is not None]
        parts += [f"{value} > {most}" for value in values if most is not None]
    if rule.multiple > 1 and not check.broken:
        parts.append(f"({' | '.join(values)}) & {rule.multiple * check.scale - 1}{nonzero}")
    return [part for part in [_settled(part, known) for part in parts] if part != "False"]


def _counted(form: RequestForm, check: RuleCheck) -> range:
    """Return the values of `i` that a check has in a request of this form."""
    if not check.each:
        return range(1)
    length = {**form.length, "mode 0": min(form.length["rank"], 1)}
    return range(length[check.after] if check.after else 0, min([length[name] for name in check.each]))


def _filled(text: str, i: int) -> str:
    """Return the source of an f-string from a text with expressions in braces, for index `i`."""
    return f"f{re.sub(_BRACES, lambda found: f'{{{instantiated(found[1], i)}}}', text)!r}"


_BRACES: Final = re.compile(r"\{([^{}]*)\}")


@functools.lru_cache(maxsize=256)
def _lister(kind: type[TensorMap], lengths: tuple[int, ...]) -> Callable[..., None]:
    """Compile the function that lists the broken rules of requests of one form.

    For each broken rule, it calls `add` with name, argument, value, mode, detail and requirement.
    """
    form = RequestForm(kind, lengths)
    body = [f"least_corner, greatest_corner = {form.corner_bounds}"]
    checks = [check for check in CHECKS if form.kind in check.kinds]
    for _, group in itertools.groupby(checks, lambda check: (check.value, check.each)):
        rows = list(group)
        for i in _counted(form, rows[0]):
            for check in rows:
                value = instantiated(check.value, i)
                broken = " | ".join([f"({part})" for part in _breaks(form, check, [value], {})])
                condition = " & ".join([f"({text})" for text in [*check.when, broken]])
                argument, detail, must = [_filled(text, i) for text in (check.argument, check.detail, check.must)]
                mode = instantiated(check.mode, i)
                said = f"{check.rule!r}, {argument}, ({value}) // {check.scale}, {mode}, {detail}, {must}"
                body.append(f"if {condition}: add({said})")
    names = (
        "data_type, has_format, is_decoded, rank_field, format_field, last_format, last_swizzle, shared_memory_bytes"
    )
    return form.function(f"{names}, gpu, FORMATS, add", body)


JUDGED: Final = "data_type, shared_memory_bytes"
"""The arguments after the source, for a function whose body contains `is_broken`."""


def is_broken(form: RequestForm, *, strict: bool) -> str:
    """Return an expression that is true if a request of a legal form breaks a rule or has unknown bits."""
    known = {"has_format": 1, "last_format": bounds("data_type")[1], "last_swizzle": bounds("swizzle")[1]}
    known |= {"rank": form.length["rank"]} | ({} if strict else {"strided": 1})
    either, both = (" or ", " and ") if strict else (" | ", " & ")
    judged: dict[str, list[str]] = {}  # conditions of a rule -> the conditions that break these rules
    for check in CHECKS:
        if form.kind in check.kinds and not check.rare:
            values = [instantiated(check.value, i) for i in _counted(form, check)]
            conditions = [_settled(text, known) for text in check.when]
            parts = _breaks(form, check, values, known, strict=strict)
            if parts and "False" not in conditions:
                judged.setdefault(both.join([f"({text})" for text in conditions if text != "True"]), []).extend(parts)
    groups = [(when, either.join([f"({part})" for part in parts])) for when, parts in judged.items()]
    return either.join([f"({when}{both}({broken}))" if when else broken for when, broken in groups])


@functools.lru_cache(maxsize=64)
def map_judge(form: RequestForm, *, strict: bool) -> Callable[..., Value]:
    """Compile the function (source, data type, bytes of shared memory) -> whether the source breaks a rule.

    Over columns, the result is an array with one answer per map.
    """
    return form.function(JUDGED, [f"return {is_broken(form, strict=strict)}"], strict=strict)


_JUDGES: Final[dict[tuple[type[TensorMap], int], Callable[..., Value]]] = {}


NO_LEGAL_VALUE: Final = (IndexError, ValueError, TypeError, ZeroDivisionError)
"""Exceptions that a strict function raises for wrong lengths, and for values that are in no table."""


def keeps_rules(request: TensorMap, gpu: Architecture) -> bool:
    """Whether a request breaks no rule, has only known bits, and has no residue.

    This fast path decides nearly every legal request in a fraction of the time of `broken_rules`. For other requests it
    returns False, and the caller needs `broken_rules`.
    """
    if request.residue is not None:
        return False
    key = type(request), len(request.global_dim)
    judged = _JUDGES.get(key)
    try:
        if judged is None:
            judged = _JUDGES[key] = map_judge(legal_form(*key), strict=True) if has_legal_rank(*key) else _refused
        return not judged(request, request.data_type, gpu.shared_memory_bytes)
    except NO_LEGAL_VALUE:
        return False


def has_legal_rank(kind: type[TensorMap], rank: int) -> bool:
    """Whether a map of this kind can have this many modes."""
    least, most = bounds("rank" if kind is TensorMapTiled else "rank_im2col")
    return least <= rank <= most


def _refused(request: TensorMap, data_type: int | None, shared_memory_bytes: int) -> bool:
    return True


@functools.cache
def _last(rule: str, more: Collection[int]) -> int:
    """Return the largest legal value of an enum on a GPU that also has the values `more`."""
    return max((bounds(rule)[1], *more))


def broken_rules(request: TensorMap, gpu: Architecture) -> list[Diagnostic]:
    """List the rules that a request breaks on a GPU, in the order of `CHECKS`."""
    found: list[Diagnostic] = []

    residue, data_type = request.residue, request.data_type
    kind: Any = type(request)
    _lister(kind, tuple([len(getattr(request, name)) for name in kind.TUPLES]))(
        request,
        data_type=-1 if data_type is None else data_type,
        has_format=data_type is not None,
        is_decoded=residue is not None,
        rank_field=f.field("rank").read(residue.bits) if residue is not None else 0,
        format_field=f.field("format").read(residue.bits) if residue is not None else 0,
        last_format=_last("data_type", gpu.data_types),
        last_swizzle=_last("swizzle", gpu.swizzles),
        shared_memory_bytes=gpu.shared_memory_bytes,
        gpu=gpu,
        FORMATS=FORMATS,
        add=lambda *said: found.append(broken_rule(*said)),
    )
    return found
