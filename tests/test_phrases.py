"""Phrases that a reader of English stops at: translated idioms, and names of this library's past. None is left.

Phrases and not words: '64-bit word', '2-way conflict' and 'a row stands for' are fine. Every pattern has an example
that it finds and one that it leaves alone. Line breaks, quotes and comment signs count as blanks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.each import each_of

ROOT = Path(__file__).parents[1]

PHRASES: tuple[tuple[str, str, str], ...] = (
    (r"\b(tells?|telling|told) (?!apart)[\w`(]+", "`hazards` tells what is legal", "`hazards` lists what is legal"),
    (r"\b(is|are|was|were|be|been|as) told\b", "before it was told", "before it was shown"),
    (
        r"\b(whole|its|their|the) way (of|from|through) (a|an|the|every|each|all|its|their)\b",
        "the way of every byte",
        "a way",
    ),
    (r"\b(whole|read its|tells its|shows its) way\b", "read its way", "read its path"),
    (r"\bways? out\b", "errors and ways out", "errors and fixes"),
    (r"\bin words\b|\b(has|have|had|no|of) words\b", "explain has words for it", "64-bit words"),
    (
        r"\b(its|own|same|the|whose) words (of|for|that|with|it|they)\b",
        "the words for the assembler",
        "the words 0 to 7",
    ),
    (r"\bfor ever\b", "waits for ever", "waits forever"),
    (
        r"\b(as (it|they) stands?|stands? (at|there|below|beside|between|before|in|on|once))\b",
        "used as it stands",
        "stands for it",
    ),
    (r"\bsays? (where|so of|which of)\b", "what parts says where", "says what"),
    (r"\b(mode|instruction|pass|rule|place|table|CTA|element|byte)\((s|es)\)", "2 mode(s)", "text(s)"),
    (r"\b(that|which|it|they|what) (is|are) none\b", "a query that is none is refused", "there is none"),
    (r"\bhas no place in\b", "im2col has no place in this form", "has no place yet"),
    (
        r"\b(is|are|be|was) no (multiple|array|tensor|layout|number|integer|text|power|identifier|file|path|basis"
        r"|sequence|function|class|error|whole|swizzle|mask|tuple|plain|XML|SVG|UTF-8|JSON|pointer|permutation)\b",
        "the stride is no multiple of 16",
        "there is no more",
    ),
    (r"\b(no|not a|of no) whole (number|multiple|16|bytes|line|row)\b", "rows are no whole 16 bytes", "a whole row"),
    (r"\bwhole (story|way|pieces?|turns|times)\b", "the whole story", "the whole tensor"),
    (r"\b(is|are|was|were) (asked of|said of|gone)\b", "what is asked of Trace", "is asked for"),
    (r"\b(left out|lost|wrong|missing|it) is said\b", "what is left out is said", "it is"),
    (r"\bwho says (so|that)\b", "who says so", "who says"),
    (r"\b(to|can|may) be asked\b(?! for)", "what an instance can be asked", "can be asked for"),
    (r"\bthe (house|floors?)\b", "how the house is built", "the architecture"),
    (r"\btext twin", "the text twin of a picture", "the text of a picture"),
    (r"\bthe rest of it is\b|\bhas the rest\b", "this page has the rest", "the rest is zero"),
    (r"\bwhat was not at hand\b|\bwas at hand\b", "no GPU was at hand", "the task at hand"),
    (r"\bin force\b|\blaid open\b", "rules are laid open", "enforced"),
    (r"\b(so that|as|while|what|where) one (sees|types|expects)\b", "while one types", "no one sees it"),
    (r"\b(takes|took) apart\b", "words that the shell took apart", "takes part"),
    (r"\b(of|most|by|to) so many\b", "rows of so many bytes", "so many that"),
    (r"\b(one|two|four|eight) an? (byte|CTA|stage|warp|thread|iteration)\b", "two e2m1, two a byte", "two per byte"),
)
"""(pattern, a text that it finds, one that it leaves alone)."""

IN_DOCS: tuple[tuple[str, str, str], ...] = (
    (r"\bof which\b", "128 bytes, of which 64 are read", "64 of them are read"),
    (r"\bthat which\b", "that which is read", "that is read"),
    (r"\bin place of that\b", "a list in place of that", "in place of a tuple"),
    (r"\b\d+ [a-z]+\(e?s\)", "1 thing(s)", "f(s)"),
    (r"(?:^|\n)[ \t]*(?:[-*] )?Nothing that\b", "\nNothing that is read", "Nothing is read"),
)
"""Phrases of prose that pages no longer have; sources still do. Printouts are not prose."""

NAMES = (
    r"copy_way|way_of|text_twin|driver_traps|wording|birth_sequence|host_born|passes_of_a_read|gpu_listed"
    r"|gpu_edges|kernel_oneway|TileWork|without_zeros|coalesced_beyond\w*|on_domain|why_not_filled|swizzle_units(?!\")"
    r"|wait_report|_spoil|_meet|_tell|_told|is_chain|DriverTrap|\w+_words"
)
"""Identifiers of the past; a rule may keep its id, and an alias the name that it is for."""

WORDS_OF_64_BITS = "break_long_words|unknown_words|bare_words|behind_words|_from_words"
"""Identifiers that end in `_words` and mean words."""

UNTOUCHED = ("docs/measurements", "docs/reference-pages-map.md", "docs/differences.md")
"""Records of runs, and tables that quote the reference pages."""


def texts() -> list[Path]:
    """Every text that a reader meets: sources, pages, the list of changes."""
    found = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/**/*.ipynb"),
        *ROOT.glob("cute_py/**/*.py"),
        *ROOT.glob("cute_py/**/*.txt"),
    ]
    skipped = UNTOUCHED
    return [path for path in sorted(found) if not str(path.relative_to(ROOT)).startswith(skipped)]


def joined(text: str) -> str:
    """A text on one line: breaks with their indents, comment signs and quotes are blanks."""
    return re.sub(r"[\"']?\s*\n\s*(#:?\s|[fr]?[\"'])?", " ", text)


@each_of(("pattern", "found", "fine"), PHRASES, ids=[row[1] for row in PHRASES])
def test_a_pattern_finds_its_phrase_alone(pattern: str, found: str, fine: str) -> None:
    assert re.search(pattern, found)
    assert not re.search(pattern, fine)


def may_match(pattern: str, text: str) -> bool:
    """Whether a pattern matches without its word boundaries, which `re` finds by the first letters."""
    return re.search(pattern.replace(r"\b", ""), text) is not None


def test_no_phrase_is_left() -> None:
    found = []
    for path in texts():
        text = path.read_text()
        if path.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        text = joined(text)
        left = [
            text[max(m.start() - 40, 0) : m.end() + 30]
            for pattern, *_ in PHRASES
            if may_match(pattern, text)
            for m in re.finditer(pattern, text)
        ]
        if path.suffix == ".py":
            left += re.findall(rf"\b(?!{WORDS_OF_64_BITS})(?:{NAMES})\b(?!\": \")", text)
        found += [f"{path.relative_to(ROOT)}: {words}" for words in left]
    assert not found, "\n".join(found)


def prose(path: Path) -> str:
    """What a page says itself: no fenced blocks; of CONTRIBUTING not the table of sentences that are not to be used."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    if path.name == "CONTRIBUTING.md":
        text = "\n".join(line for line in text.splitlines() if not line.startswith("| "))
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("pattern", "found", "fine"), IN_DOCS, ids=[row[1] for row in IN_DOCS])
def test_a_pattern_of_pages_finds_its_phrase_alone(pattern: str, found: str, fine: str) -> None:
    assert re.search(pattern, found)
    assert not re.search(pattern, fine)


PAGES = [path for path in texts() if path.suffix in (".md", ".ipynb")] + [ROOT / "docs" / "differences.md"]


def test_pages_are_free_of_twisted_phrases() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text[max(m.start() - 40, 0) : m.end() + 30]}"
        for path in PAGES
        for text in [prose(path)]
        for row in IN_DOCS
        for m in re.finditer(row[0], text)
    ]
    assert not found, "\n".join(found)
