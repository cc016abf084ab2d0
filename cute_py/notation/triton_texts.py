"""Parse Triton's encodings, from attributes of several versions of its IR and from the repr of Gluon's classes.

    #ttg.blocked<{sizePerThread = [1, 4], ...}>       #triton_gpu.blocked<{...}> in earlier versions
    BlockedLayout(size_per_thread=[1, 4], ...)        the keys may be omitted

A shared encoding with `hasLeadingOffset = true`, as in earlier versions, becomes #ttg.nvmma_shared. `CTAsPerCGA` is
accepted only for one CTA.
"""

from __future__ import annotations

import re
from typing import Any, Final, get_args

from cute_py.argument_checks import check_magnitude, expect
from cute_py.errors import ParseError, given, shortened
from cute_py.notation.triton import TritonLayout, is_linear, parse_triton
from cute_py.notation.triton_encodings import (
    LEFT_OUT,
    BlockedEncoding,
    DotOperandEncoding,
    NvidiaMmaEncoding,
    NvmmaSharedEncoding,
    SliceEncoding,
    SwizzledSharedEncoding,
    TritonEncoding,
)

_DEEPEST: Final = 8
"""Maximum nesting of encodings within encodings."""
_KINDS: Final[dict[str, Any]] = {kind.NAME: kind for kind in get_args(TritonEncoding)}
_CLASSES: Final[dict[str, tuple[Any, str]]] = {
    "Blocked": (BlockedEncoding, "size_per_thread threads_per_warp warps_per_cta order cga_layout"),
    "NVMMADistributed": (NvidiaMmaEncoding, "version warps_per_cta instr_shape cga_layout"),
    "DotOperand": (DotOperandEncoding, "operand_index parent k_width"),
    "Slice": (SliceEncoding, "dim parent"),
    "SwizzledShared": (SwizzledSharedEncoding, "vec per_phase max_phase order cga_layout"),
    "NVMMAShared": (NvmmaSharedEncoding, "swizzle_byte_width element_bitwidth rank transposed fp4_padded cga_layout"),
}
"""Gluon's class -> the encoding, its parameters in their order."""
NAMES: Final = frozenset((*_KINDS, *_CLASSES, "shared"))
"""Names of the supported encodings, of attributes and of classes."""
_OTHER_NAMES: Final = {
    "operand_index": "op_idx",
    "swizzle_byte_width": "swizzling_byte_width",
    "element_bitwidth": "element_bit_width",
    "CTAsPerCGA": "ctas_per_cga",
    "CTASplitNum": "cta_split_num",
    "CTAOrder": "cta_order",
}
_ONE_CTA: Final = ("ctas_per_cga", "cta_split_num", "cta_order")
"""Keys for the CTAs of a cluster in earlier versions; accepted if there is one CTA."""
_OPEN: Final = re.compile(r"\s*#(?:ttg\.|triton_gpu\.)?(\w+)\s*<\{")
_OPEN_CLASS: Final = re.compile(r"\s*(?:\w+\.)*(\w+)Layout\(")
_OTHER: Final = re.compile(r"\s*(?:#\w{1,40}\.(\w{1,80})\s*<|(?:\w{1,40}\.){0,3}(\w{1,80})Layout\()")
"""The name of an attribute or of a class, whether it is supported or not."""
_LINEAR: Final = ("linear", "generic_linear", "shared_linear", "DistributedLinear", "SharedLinear")
_KEY: Final = re.compile(r"\s*(\w+)\s*=\s*")
_WORD: Final = re.compile(r"\s*(true|false|True|False|None|[0-9]{1,39})")


class _Reader:
    """Reads an attribute of Triton's IR, or a Gluon class, from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def failure(self, expected: str) -> ParseError:
        return ParseError(
            f"at position {self.at}: expected {expected}", {"text": shortened(self.text, 80)}, position=self.at
        )

    def found(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def taken(self, mark: str) -> bool:
        rest = self.text[self.at :].lstrip()
        if rest.startswith(mark):
            self.at = len(self.text) - len(rest) + len(mark)
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.taken(mark):
            raise self.failure(repr(mark))

    def deeper(self, things: str) -> None:
        """Enter a nested level of encodings or brackets; refuse a level that is too deep."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.failure(f"at most {_DEEPEST} nested {things}")

    def encoding(self) -> Any:
        """Read #ttg.name<{key = value, ...}> or NameLayout(key=value, ...)."""
        self.deeper("encodings")
        if head := self.found(_OPEN):
            kind, older = _KINDS.get(head[1]), head[1] == "shared"
            if kind is None and not older:
                raise self.failure(f"one of {', '.join(_KINDS)}, got {given(head[1])}")
            kind = kind or SwizzledSharedEncoding
            keys = {key: name for name, key in kind.parameter_keys().items()}
            values = self._values({**keys, **({"hasLeadingOffset": "leading"} if older else {})}, "}")
            self.need(">")
        elif head := self.found(_OPEN_CLASS):
            if head[1] not in _CLASSES:
                raise self.failure(f"one of {', '.join(_CLASSES)}, got {given(head[1])}")
            kind, names = _CLASSES[head[1]]
            values = self._values({name: _OTHER_NAMES.get(name, name) for name in names.split()}, ")")
        else:
            raise self.failure("an encoding such as #ttg.blocked<{...}>")
        self.depth -= 1
        return self._made(kind, values)

    def _values(self, names: dict[str, str], end: str) -> dict[str, Any]:
        """Read the values of the fields up to the end mark; classes may omit the keys."""
        order = iter(list(names.values()))
        values: dict[str, Any] = {}
        names = names | {key: _OTHER_NAMES.get(key, key) for key in (*_OTHER_NAMES, *_ONE_CTA) if "cta" in key.lower()}
        while not self.taken(end):
            if values:
                self.need(",")
            key = self.found(_KEY)
            name = names.get(key[1]) if key is not None else next(order, None) if end == ")" else None
            if name is None or name in values:
                raise self.failure(f"each of {', '.join(names)} once")
            values[name] = self.value()
        return values

    def _made(self, kind: Any, values: dict[str, Any]) -> Any:
        """Make the encoding from its values, in the form of any version of Triton."""
        ctas = [values.pop(name, None) for name in _ONE_CTA]
        if ctas[0] and any(n != 1 for n in ctas[0]):
            raise self.failure("one CTA, or cga_layout, because CTAsPerCGA with several CTAs is not supported")
        values = {name: value for name, value in values.items() if value is not None}
        if kind is NvidiaMmaEncoding and "version" in values:
            version = values.pop("version")
            if not isinstance(version, tuple) or len(version) != 2:
                raise self.failure("a version of two numbers")
            values["version_major"], values["version_minor"] = version
        needed = [k for k in kind.parameter_keys() if k not in values and k not in LEFT_OUT]
        if kind is NvmmaSharedEncoding and needed == ["transposed"]:
            values["transposed"], needed = False, []
        if needed:
            raise self.failure(f"a value of {kind.parameter_keys()[needed[0]]}")
        if not values.pop("leading", False):
            return kind(**values)
        # Earlier versions describe the layout of wgmma by its vectors and phases.
        found = SwizzledSharedEncoding(**values)
        return NvmmaSharedEncoding(16 * found.max_phase, found.order[0] == 0, 128 // found.vec)

    def value(self) -> Any:
        if self.taken("["):
            self.deeper("brackets")
            items: list[Any] = []
            while not self.taken("]"):
                if items:
                    self.need(",")
                items.append(self.value())
            self.depth -= 1
            return tuple(items)
        if word := self.found(_WORD):
            if word[1] == "None":
                return None
            truth = word[1].lower()
            return truth == "true" if truth in ("true", "false") else check_magnitude(int(word[1]), "a parameter")
        return self.encoding()


def parse_triton_encoding(text: str) -> TritonEncoding:
    """Parse an encoding: an attribute of Triton's IR, as in its dumps, or a class as Gluon prints it.

    Raises:
        ParseError: the text is not an encoding. InvalidValueError, InvalidTypeError: the parameters fit no encoding.

    >>> encoding = parse_triton_encoding("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>")
    >>> encoding.vec, print(encoding)
    #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
    (8, None)
    """
    reader = _Reader(expect(text, str, "the text of an encoding"))
    found: TritonEncoding = reader.encoding()
    if reader.text[reader.at :].strip():
        raise reader.failure("the end of the text")
    return found


def parse_any(text: str) -> TritonLayout | TritonEncoding:
    """Parse a linear layout or an encoding.

    Raises:
        ParseError: the text is neither. The error of another encoding, such as a layout of tensor memory, names the
            encodings that can be parsed.
    """
    other = _OTHER.match(text)
    name = (other[1] or other[2]) if other else ""
    if name and not is_linear(text) and name not in (*NAMES, *_LINEAR):
        explained = re.match("tensor_?memory|padded", name, re.IGNORECASE)
        raise ParseError(
            f"at position 0: {given(name)} is not an encoding that parse supports",
            {"text": shortened(text, 80), "supported": ", ".join(sorted((*_KINDS, "linear", "shared_linear")))},
            "explain(text) explains the parameters of this layout" if explained else None,
        )
    encoded = _OPEN.match(text) or ((found := _OPEN_CLASS.match(text)) and found[1] in _CLASSES)
    return parse_triton_encoding(text) if encoded and not is_linear(text) else parse_triton(text)
