"""Words, questions, and texts of C++ that stand alone."""
# ruff: noqa: E501, the texts of compilers keep their lines

from __future__ import annotations

import numpy as np
import pytest

import cute_py as cute
from cute_py import Int
from cute_py.errors import InvalidTypeError
from cute_py.explanation.reasons import TERMS
from cute_py.explanation.rows.terms import WORDS, key, word_of
from cute_py.machine.rules import REASONS
from tests.each import each_of

SPELLINGS = {
    "swizzle": ("swizzles", "what is a swizzle?", "Swizzles"),
    "layout": ("layouts", "What is a layout"),
    "descriptor": ("descriptors", "what are descriptors?"),
    "tiler": ("tilers", "what is a tiler", "explain a tiler"),
    "TMA": ("tma", "what is TMA?", "what does TMA stand for?"),
    "TV layout": ("TV-layout", "tv layouts", "thread-value layout", "tv"),
    "bank conflict": ("bank conflicts", "bank-conflict", "What is a bank conflict?"),
    "out of bounds": ("out-of-bounds", "OOB", "what does out of bounds mean?"),
    "coordinate tensor": ("coordinate tensors", "identity tensor"),
    "basis element": ("what is a basis element",),
    "tensor map": ("TMA descriptor", "tensor maps"),
    "fence.proxy.async": ("proxy fence",),
    "box": ("boxes",),
    "CTA": ("CTAs", "what is a CTA?", "thread block", "cooperative thread array"),
    "wavefront": ("wavefronts", "what is a wavefront?"),
    "static integer": ("dynamic", "dynamic integers", "what does dynamic mean?"),
    "transpose": ("transposed", "what is a transpose?"),
    "checkpoint": ("checkpoints", "what is a checkpoint?"),
    "warp": ("warps",),
    "warp specialization": ("warp-specialized", "warp specialisation"),
    "pipeline": ("producer", "consumers"),
}


@each_of("word", sorted({*WORDS, *SPELLINGS}))
def test_every_word_has_its_own_text(word: str) -> None:
    text = cute.explain(word.swapcase() if word != "layout" else word)  # `Layout` is the class
    assert text.splitlines()[0] == word
    for other in SPELLINGS.get(word, ()):
        if other != "tma":  # the module
            assert cute.explain(other) == text, other


def test_no_word_is_listed_twice() -> None:
    names = [key(name) for name in (*WORDS, *TERMS)]
    assert len(names) == len(set(names))


@each_of("text", ["1@0", "_1@0", "E<0>", "(8,4):(4,1)", "composition", "128B", "Sw<3,4,3>"])
@each_of("question", ["what is {}", "What is {}?", "what does {} mean?", "explain {}"])
def test_a_question_is_answered_as_what_it_asks_about(text: str, question: str) -> None:
    assert cute.explain(question.format(text)) == cute.explain(text)


def test_a_strategy_of_the_tests_is_found_by_its_place() -> None:
    """The plain word is the thing; `testing.swizzles` is the strategy."""
    assert "defined in cute_py.testing.strategies" in cute.explain("testing.swizzles")
    assert "strategies" not in cute.explain("swizzles")


@pytest.mark.parametrize("text", ["how do I get rich", "what is the answer to all of it?", "what is"])
def test_other_sentences_are_refused(text: str) -> None:
    with pytest.raises(InvalidTypeError, match="no explanation"):
        cute.explain(text)


def test_a_pointer_without_a_space_is_not_called_registers() -> None:
    text = cute.explain("ptr[32b](0x7f0000001000) o (8,4):(4,1)")
    assert "memory space unknown at 0x7f0000001000" in text
    assert "registers" not in text


@pytest.mark.parametrize(
    ("spelled", "printed"),
    [
        (
            "cute::Layout<cute::tuple<cute::C<128>, cute::C<64> >, cute::tuple<cute::C<64>, cute::C<1> > >",
            "(_128,_64):(_64,_1)",
        ),
        ("cute::Layout<cute::tuple<cute::C<8>, int>, cute::tuple<long, cute::_1>>", "(_8,n0):(n1,_1)"),
        ("type = const cute::Swizzle<3, 4, 3> &", "Sw<3,4,3>"),
        (
            "cute::ComposedLayout<cute::Swizzle<3,4,3>, cute::C<0>, cute::Layout<cute::tuple<cute::C<8>, cute::C<64> >, cute::tuple<cute::C<64>, cute::C<1> > > >",
            "Sw<3,4,3> o _0 o (_8,_64):(_64,_1)",
        ),
    ],
)
def test_a_type_alone_is_read(spelled: str, printed: str) -> None:
    assert cute.explain(spelled).splitlines()[0] == f"A type of CuTe C++: {printed}"


def test_a_type_that_is_cut_off_is_said_to_be() -> None:
    text = cute.explain("cute::Layout<cute::tuple<cute::C<128>...")
    assert "cut off" in text
    assert "_128" not in text


def test_a_message_alone_is_explained() -> None:
    message = "Could not find a common tile-gmem vectorization. Does the Tile select out major GMEM modes?"
    assert "contiguous in shared memory" in cute.explain(message)
    assert "to do" in cute.explain(message)


def test_a_coordinate_of_more_entries_than_the_tiler() -> None:
    """local_tile(tensor, (_32,_32), (0,1,0)) as g++ prints it, whose assertion has no message."""
    output = """\
cute/algorithm/tuple_algorithms.hpp: In instantiation of ‘constexpr auto cute::append(const T&, const X&) [with int N = 2; T = tuple<int, int, int>; X = Underscore]’:
cute/tensor_impl.hpp:1041:25:   required from ‘constexpr auto cute::local_tile(Tensor&&, const Tiler&, const Coord&) [with Tensor = Tensor<ViewEngine<gmem_ptr<float*> >, Layout<tuple<C<128>, C<64> >, tuple<C<1>, C<128> > > >&; Tiler = tuple<C<32>, C<32> >; Coord = tuple<int, int, int>]’
main.cpp:4:19:   required from here
cute/algorithm/tuple_algorithms.hpp:807:23: error: static assertion failed
  807 |       static_assert(N > tuple_size<T>::value);
      |                     ~~^~~~~~~~~~~~~~~~~~~~~~
"""
    text = cute.explain(output)
    assert "condition: N > tuple_size<T>::value" in text
    assert "entries of the coordinate: 3; entries of the tiler: 2" in text
    assert "to do : Use one entry of the coordinate" in text
    fitting = cute.explain(output.replace("Coord = tuple<int, int, int>", "Coord = tuple<int, int>"))
    assert "entries of the coordinate" not in fitting


def test_examples_of_words_run() -> None:
    """What a word's row offers after `see`: each part between semicolons is an expression that Python evaluates."""
    names = {name: getattr(cute, name) for name in (*cute.__all__, "_", "tma", "tmem", "mesh", "formats")}
    names |= {"cute": cute, "cute_py": cute}
    layout = cute.Layout((Int(4), Int(8)), (Int(8), Int(1)))
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    names |= {"layout": layout, "tiler": (Int(2), Int(4)), "tensor": cute.make_tensor(np.arange(32), layout)}
    names |= {"mma": mma, "atom": "SM80_16x8x16_F32F16F16F32_TN"}
    failed = []
    for word, row in list(WORDS.items())[11:]:  # the rows before these are sentences
        for part in row.fix.rstrip(".").split("; "):
            try:
                eval(part, dict(names))
            except Exception as error:
                failed.append(f"{word}: {part}: {error}")
    assert not failed


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("mode", "mode"),
        ("K-major", "K-major"),
        ("MN-major", "K-major"),
        ("thread layout", "value layout"),
        ("what is a residue?", "residue"),
        ("basis stride", "basis element"),
        ("tx-count", "transaction count"),
        ("what is a K-major layout?", "K-major"),
        ("((8,8):(8,1)) o ((8,4):(1,16))", "composition(A, B) with A = (8,8):(8,1), B = (8,4):(1,16)"),
        ("explain(nullspace)", "nullspace(layout)"),
        ("right inverse", "right_inverse(layout)"),
        ("nullspace((_4,_8):(_0,_1))", "nullspace((_4,_8):(_0,_1))\nresult: _4:_1"),
        ("explain(nullspace, (_4,_8):(_0,_1))", "nullspace((_4,_8):(_0,_1))\nresult: _4:_1"),
        ("max_common_vector((4,8):(1,4),(4,8):(1,4))", "max_common_vector((4,8):(1,4), (4,8):(1,4))\nresult: _"),
        ("complement(_4:_2,_24,3)", "complement(_4:_2, _24, 3)\nis refused: too many positional arguments"),
        ("zipped_divide((_8,_4):(_4,_1),(_2,_2))", "zipped_divide((_8,_4):(_4,_1), (_2,_2))\nby mode: mode 0"),
    ],
)
def test_terms_and_calls(text: str, begin: str) -> None:
    assert str(cute.explain(text)).startswith(begin)


def test_a_surplus_bracket_is_marked() -> None:
    with pytest.raises(InvalidTypeError) as refused:
        cute.explain("((_2,_2),_3):(_24,_2),_8)")
    assert refused.value.facts["parse"] == "at position 24: this ')' closes no '('"
    assert refused.value.facts["here"] == " " * 24 + "^"


def test_a_swizzle_that_breaks_its_rule() -> None:
    with pytest.raises(InvalidTypeError) as refused:
        cute.explain("Sw<3,2,1>")
    assert refused.value.facts["must be"] == "abs(SShift) >= BBits"
    assert "its condition is abs(S) >= B" in str(refused.value.facts["why"])


def test_every_finding_of_a_run_is_known_by_its_name() -> None:
    """As an answer of `run_ptx` begins with it: `hang: parity`, `missing proxy fence`."""
    named = 0
    for rule, reason in REASONS.items():
        name = rule.replace(", ", ": ", 1)
        if word_of(name, TERMS) is not None:  # the word has a meaning without a run: parity, tensor memory
            continue
        named += 1
        text = str(cute.explain(name))
        assert text.startswith(f"{name}, a finding of run_ptx\n")
        for part in (reason.why, reason.fix, reason.source):
            assert " ".join(part.split()) in " ".join(text.split())
    assert named > 0.9 * len(REASONS)
    assert str(cute.explain("what is a missing proxy fence?")) == str(cute.explain("missing proxy fence"))
    with pytest.raises(InvalidTypeError, match="no explanation"):
        cute.explain("read before it leaves")
