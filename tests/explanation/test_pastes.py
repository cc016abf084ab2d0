"""What programs print, pasted: the recorded texts, further ones of each kind, and texts without sense."""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections.abc import Callable
from html import escape

import pytest

import cute_py as cute
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, ParseError
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.messages import by_program
from cute_py.notation.parse import MOST_TEXT
from cute_py.tma import TensorMapTiled, violations
from cute_py.tma.descriptor.fixes import find_changes
from tests.each import each_of
from tests.explanation.threads import SEEN, Seen
from tests.explanation.variants import SOUND, Variant, cutlass, variants
from tests.oracle.records import rows
from tests.pace import took_more, within
from tests.shares import one_in

PASTES = rows("pastes")
VARIANTS = variants()
TEXTS = [*[row["text"] for row in PASTES], *[row.text for row in SEEN]]


@each_of("row", PASTES, ids=[row["id"] for row in PASTES])
def test_a_recorded_paste_is_answered(row: dict[str, str]) -> None:
    said = cute.explain(row["text"]).lower()
    assert [part for part in row["says"] if part.lower() not in said] == []


@each_of("row", [row for row in PASTES if row["not_in_text"]], ids=lambda row: row["id"])
def test_an_answer_is_no_echo(row: dict[str, str]) -> None:
    """What the text does not have is said in words that are not the text's own."""
    answer = cute.explain(row["text"]).lower()
    for line in row["text"].lower().split("\n"):
        answer = answer.replace(line.strip(), " ") if len(line.strip()) > 8 else answer
    assert [part for part in row["not_in_text"] if part.lower() not in answer] == []


@each_of(("name", "text", "says"), VARIANTS, ids=[row[0] for row in VARIANTS])
def test_a_further_paste_is_answered(name: str, text: str, says: tuple[str, ...]) -> None:
    said = cute.explain(text).lower()
    assert [part for part in says if part.lower() not in said] == []


@each_of("row", SEEN, ids=[row.thread for row in SEEN])
def test_a_text_of_a_public_thread_is_answered(row: Seen) -> None:
    answer = cute.explain(row.text)
    assert [part for part in row.says if part.lower() not in answer.lower()] == []
    assert any(part.lower() not in row.text.lower() for part in row.says)  # it is no echo
    if row.broken is not None:
        assert ("\nWrong" in answer) == row.broken


def test_a_print_and_its_result_are_one_answer() -> None:
    twice = cutlass(9, [512, 64], [2, 1024], [64, 32]) + "\n" + cutlass(9, [500, 64], [2, 1000], [64, 32])
    garbled = next(row["text"] for row in PASTES if row["id"] == "a-garbled")
    assert [len(readings_of(text)) for text in (twice, twice.split("\nTMA")[0], garbled)] == [2, 1, 1]
    (alone,) = readings_of("Error: Failed to initialize the TMA descriptor 999")
    assert "the driver or the virtual machine, not these arguments" in str(alone)


def test_a_message_in_an_assertion_is_answered_once() -> None:
    for row in SEEN:
        if "ssert" in row.text and row.thread.startswith(("cccl", "copy_sm90")):
            assert len(readings_of(row.text)) == 1


def test_there_are_sixty_further_pastes() -> None:
    assert len({text for _, text, _ in VARIANTS}) >= 60


@pytest.mark.parametrize(
    "row", PASTES[:5] + VARIANTS[:3], ids=lambda row: row["id"] if isinstance(row, dict) else row[0]
)
def test_lines_around_a_paste_change_nothing(row: dict[str, str] | Variant) -> None:
    text = row["text"] if isinstance(row, dict) else row[1]
    around = f"Traceback (most recent call last):\n  File run.py\n{text}\nAborted (core dumped)\n"
    assert [str(r) for r in readings_of(around)] == [str(r) for r in readings_of(text)]


def test_a_sound_paste_is_called_sound() -> None:
    sound = [row for row in PASTES if row["id"] in ("a-recsys86", "a-tf32ok", "a-garbled", "f-tilelang")]
    assert len(sound) == 4
    for row in sound:
        assert SOUND in cute.explain(row["text"])
        assert "\nWrong" not in cute.explain(row["text"])


def test_a_change_breaks_no_rule() -> None:
    """Random requests: whatever change is proposed, the changed request is legal; most broken ones have one."""
    rng = random.Random(5)
    proposed = broken = 0
    for _ in range(600):
        rank = rng.randint(1, 5)
        kind = rng.choice((0, 6, 7, 9))
        width = {0: 1, 6: 2, 7: 4, 9: 2}[kind]
        dims = tuple(rng.randint(1, 5000 if rank < 4 else 100) for _ in range(rank))
        strides, step = [], width
        for size in dims[:-1]:
            step *= size
            strides.append(step if rng.random() < 0.6 else -(-step // 16) * 16)
        box = tuple(rng.choice((1, 4, 8, 48, 64, 128, 300, 512)) for _ in range(rank))
        request = TensorMapTiled(kind, rng.choice((0, 4096, 8)), dims, tuple(strides), box, swizzle=rng.randint(0, 4))
        if not violations(request):
            assert find_changes(request) == []
            continue
        broken += 1
        found = find_changes(request)
        proposed += bool(found)
        assert all(violations(changed) == [] for _, changed in found)
    assert proposed > 0.95 * broken > 300


def test_a_change_is_in_the_answer() -> None:
    text = cutlass(6, [1001, 512], [2, 2002], [64, 64])
    shown = re.search(r"A change that works\n  ([^\n]*)", cute.explain(text))
    assert shown is not None and shown[1] == "globalStrides (2002,) -> (2016,) bytes: pad each row to 1008 elements"


@pytest.mark.parametrize(
    ("tiler", "layout"),
    [
        ("(ThrID:_128,_8)", "(_256,_4):(_4,_1)"),
        ("Atom", "(_256,_4):(_4,_1)"),
        ("(_0,_1)", "(_256,_4):(_4,_1)"),
        ("(_128,_8)", "(n,_4):(_4,_1)"),
    ],
)
def test_a_tiled_copy_of_names_is_a_paste(tiler: str, layout: str) -> None:
    """`parse` takes numbers alone there, and a tile that is not empty; the print is answered all the same."""
    atom = next(row["text"] for row in PASTES if row["id"] == "b-1545c").partition("Copy_Atom")[2]
    text = f"TiledCopy\n  Tiler_MN:       {tiler}\n  TiledLayout_TV: {layout}\nCopy_Atom{atom}"
    with pytest.raises(ParseError, match=r"positive numbers|of numbers"):
        cute.parse(text)
    assert cute.explain(text).startswith("TiledCopy, as CuTe prints it")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CUDA_ERROR_NO_BINARY_FOR_GPU", "code for sm_90a runs on no other architecture"),
        ("CUDA_ERROR_INVALID_CLUSTER_SIZE", "the grid must be a multiple of the cluster"),
        ("cuTensorMapEncodeTiled returned CUDA_ERROR_NOT_SUPPORTED", "this GPU has no TMA"),
    ],
)
def test_an_error_before_any_instruction_asks_for_none(text: str, says: str) -> None:
    said = cute.explain(text)
    assert says in said and "Missing" not in said


@pytest.mark.parametrize("words", ["hangs at an mbarrier", "deadlocks in consumer_wait", "is stuck in a wait"])
def test_a_hang_in_words_has_its_causes(words: str) -> None:
    said = cute.explain(f"my kernel {words}")
    assert "waits for a phase that never completes" in said
    assert "run_ptx(...)" in said and "Missing in the text" in said


def test_a_swizzled_tile_between_patterns_does_not_trap() -> None:
    said = cute.explain("smem + 128, 128B swizzle\nCUDA error: misaligned address")
    assert "or TMA writes a different pattern without a trap" in said


def test_encodings_of_other_gpus_and_tiles_that_do_not_fit() -> None:
    other = cute.explain("#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32]}>")
    assert "an encoding for other GPUs" in other and "\nWrong" not in other
    shared = "#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>\n"
    small = cute.explain(f"{shared}%0 = ttg.local_alloc : () -> !ttg.memdesc<3x4x64xf16, #s, #smem, mutable>")
    assert "Wrong\n  a tile of 4 x 64: the tile has 4 rows, but the swizzle needs 8" in small
    fitting = cute.explain(f"{shared}%0 = ttg.local_alloc : () -> !ttg.memdesc<3x8x64xf16, #s, #smem, mutable>")
    assert "for a tile of 8 x 64, as CuTe writes it: Sw<3,3,3> o _0 o (_8,_64):(_64,_1)" in fitting


class Answers(dict[str, str]):
    """Thread -> the answer to its text, which is computed when it is asked for."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__()
        self.texts = texts

    def __missing__(self, thread: str) -> str:
        return cute.explain(self.texts[thread])


def test_what_has_no_part_in_an_error_is_not_named() -> None:
    """A launch is no tensor map, an assertion of Triton none of CuTe, arguments of a call are no result."""
    text_of = {row.thread: row.text for row in SEEN}
    seen = Answers(text_of)
    assert "rule of tensor maps" not in seen["cutlass 2513"] + seen["tilelang 1252"]
    assert "CuTe" not in seen["triton 6292"] + seen["sglang 913"]
    assert "CuTe" not in cute.explain("a.cpp:5: int f(int): Assertion `shared > 0' failed.")
    assert "the driver's result" not in seen["cudnn-frontend 839"]
    assert "CUDA_ERROR_UNKNOWN" not in seen["burn 4445"]
    assert "static assertion" not in seen["cutlass 3033"] + seen["cutlass 2904"]
    assert "does not have this" not in seen["XLA 4970"] + seen["cccl 1403"]
    assert "rule of tensor maps" not in seen["ao 4653"]
    assert "descriptor's bytes" not in seen["TIRx-kernels 21"]
    launched = cute.explain(
        "Got cutlass error: Error Internal at: 483\nCUDA error: too many resources requested for launch"
    )
    assert "A compile error" not in launched and "65536" in launched
    assert "beyond a multiple" not in cute.explain(
        "desc_a=0x2002fe5a8\nCUDA error: an illegal memory access was encountered"
    )
    assert "beyond a multiple" not in cute.explain("desc_a = 0x4000004000010102\nCUDA error: misaligned address")
    even = text_of["cutlass 2157"].replace("(4, 33, 1)", "(4, 34, 1)")
    assert "A launch with clusters" not in cute.explain(even)
    assert "\nLegal, and harmful" not in cute.explain("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum  0")


def test_an_unknown_text_says_what_is_missing() -> None:
    answer = cute.explain("the multicast load of my kernel is slow, the tensor map is fine")
    assert answer.startswith("Recognised in this text: tensor map, multicast\n")
    assert "Missing in the text\n  numbers that can be checked" in answer
    with pytest.raises(InvalidTypeError, match="recognised : nothing"):
        cute.explain("it does not work at all")


def mutated(rng: random.Random) -> str:
    """A text of random characters, or a recorded one that was cut, changed or joined with another."""
    kind = rng.random()
    if kind < 0.25:
        return "".join(chr(rng.randrange(256)) for _ in range(rng.randrange(200)))
    text = list(rng.choice(TEXTS))
    if kind < 0.5:
        return "".join(text[rng.randrange(len(text)) :][: rng.randrange(600)])
    for _ in range(rng.choice((1, 4, 16))):
        place = rng.randrange(len(text) + 1)
        if rng.random() < 0.5:
            text[place : place + rng.randrange(9)] = rng.choice(
                ("", "(", "9" * 50, "-1", "\n", "<", "@", "_", "\x00", "é")
            )
        else:
            source = rng.randrange(len(text) + 1)
            text[place:place] = text[source : source + rng.randrange(80)]
    return "".join(text)


@pytest.mark.parametrize(
    ("seed", "texts"), [(0, 100), *(pytest.param(n, 2000, marks=pytest.mark.slow) for n in range(1, 4))]
)
def test_any_text_has_an_answer_or_a_refusal_of_ours(seed: int, texts: int) -> None:
    rng = random.Random(seed)
    for _ in range(texts):
        text = mutated(rng)
        begin = time.process_time()
        with contextlib.suppress(CuteError):
            cute.explain(text)
        assert not took_more(time.process_time() - begin, 200), repr(text)


@pytest.mark.parametrize(
    "unit",
    one_in(
        8,
        [
            "(",
            "[",
            "<",
            "cute::tuple<",
            "lane=1 -> (1, 0)\n",
            "globalDim (",
            "0x1 ",
            "mbarrier.init [b], 1;\n",
            "TMA Desc Addr: ",
            "[with A=",
            "Layout(",
            "!cute.layout<",
            "error: ",
            "1x",
            "\n",
            "'cute.copy' op src ptr alignment (16 bits) does ",
        ],
    ),
)
def test_long_repetitions_are_quick(unit: str) -> None:
    text = unit * (MOST_TEXT // len(unit))
    for read in (cute.explain, cute.parse):
        with within(200), contextlib.suppress(CuteError):
            read(text)


@pytest.mark.parametrize("read", [cute.explain, readings_of, cute.parse], ids=lambda read: read.__name__)
def test_a_text_beyond_the_bound_is_refused_with_the_bound(read: Callable[[str], object]) -> None:
    error = "CUDA error: misaligned address\n"
    with pytest.raises(InvalidValueError, match=r"^the text has 65567 characters; must have at most 65536$"):
        read(error + "x" * MOST_TEXT)
    if read is not cute.parse:
        assert "MISALIGNED" in str(read(error + " " * (MOST_TEXT - len(error))))


def test_an_assertion_of_another_library_is_not_one_of_cute() -> None:
    said = cute.explain('mine.cuh(80): error: static assertion failed with "rows must fit"')
    assert "A static assertion, from a compiler" in said and "CuTe" not in said


def test_an_invalid_argument_of_an_unknown_function_is_no_tensor_map() -> None:
    assert "does not name the function" in cute.explain("my_copy.cu:12: CUDA driver error: invalid argument")
    assert "break a rule of tensor maps. The driver" in cute.explain("tma.cu:12: CUDA error: invalid argument")


def test_every_row_of_the_messages_has_a_program_a_rule_and_a_fix() -> None:
    """Each is found in a long text without delay, which `some` bounds in matches and not in time."""
    with within(1000):
        for row in by_program():
            groups = [str(i) for i in range(re.compile(row.pattern).groups)]
            assert row.program and row.rule and row.change.format(*groups) and row.text.format(*groups)
            for text in ("a" * 20000, "redistribute from " * 1000, "1 2 3 " * 3000):
                assert re.search(row.pattern, text, re.IGNORECASE) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "Lhs dimension k=48 must be a multiple of plane size 32",
            ("k = 48 is 1 x 32 + 16", "64, which pads by 16; or 32"),
        ),
        ("ValueError: K must be a multiple of 64, got: 32", ("K = 32", "64, which pads by 32\n")),
        ("RuntimeError: N must be divisible by 8 (got 1001)", ("N = 1001", "1008, which pads by 7; or 1000")),
        ("RuntimeError: Expected size_k % 64 == 0, but got 96", ("size_k = 96", "128, which pads by 32; or 64")),
        ("ValueError: block_size 48 is not divisible by 32", ("block_size = 48", "64, which pads by 16; or 32")),
    ],
)
def test_sizes_that_any_program_refuses(text: str, says: tuple[str, ...]) -> None:
    said = f"{cute.explain(text)}\n"
    assert [part for part in says if part not in said] == []


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: K must be a multiple of 64, got: 128",
        "q.shape[-1] must be divisible by 8, got torch.Size([2, 3, 100])",
        "ImportError: cannot import name 'x' (line 33 is 5 % 4)",
        "size must be a multiple of 0, got 3",
    ],
)
def test_sizes_that_a_text_does_not_name(text: str) -> None:
    with pytest.raises(CuteError):
        cute.explain(text)


@pytest.mark.parametrize("text", ["CUDA error: misaligned address", "CUDA_ERROR_MISALIGNED_ADDRESS in line 3 of k.cu"])
def test_a_misaligned_address_may_be_a_threads_own(text: str) -> None:
    assert "4, 8 or 16 bytes" in " ".join(str(cute.explain(text)).split())


def _each(put: str) -> Callable[[str], str]:
    return lambda text: "\n".join(put.format(line) for line in text.split("\n"))


QUOTED: dict[str, Callable[[str], str]] = {
    "colours": _each("\x1b[1;31m{}\x1b[0m\x1b[K"),
    "coloured numbers": lambda text: re.sub(r"(error|format|[0-9]{3,})", "\x1b[1;31m\\1\x1b[0m", text),
    "colours without their escape": lambda text: re.sub(r"([0-9]{4,})", r"[31m\1[0m", text),
    "colours spelled out": _each(r"\x1b[31m{}\x1b[0m"),
    "torchrun": _each("[rank0]: {}"),
    "mpirun": _each("[1,0]<stderr>:{}"),
    "ray": _each("\x1b[36m(Worker pid=1234, ip=10.0.0.1)\x1b[0m {}"),
    "vllm": _each("(EngineCore_DP0 pid=18231) ERROR 11-02 17:24:11 [core.py:718] {}"),
    "logging": _each("2026-03-04 11:22:33,123 - ERROR - {}"),
    "loguru": _each("2026-11-01 10:00:00.123 | ERROR    | __main__:main:42 - {}"),
    "glog": _each("E1101 10:00:00.123456 12345 main.cc:42] {}"),
    "actions": _each("2026-03-04T11:22:33.1234567Z {}"),
    "docker": _each("worker-1  | {}"),
    "pytest": _each("E       {}"),
    "quotation": _each("> {}"),
    "literal": repr,
    "json": json.dumps,
    "html": escape,
    "quotes": '"{}"'.format,
    "no-break spaces": lambda text: text.replace("  ", "\u00a0 "),
    "byte order mark": "\ufeff{}".format,
}


@pytest.mark.parametrize("every", [32, pytest.param(1, marks=pytest.mark.slow)])
@each_of("how", QUOTED)
def test_a_paste_is_answered_as_it_came_out_of_a_log(how: str, every: int) -> None:
    """The answer is that to the text alone, but for what a form of quoting can't keep."""
    for row in PASTES[::every]:
        assert cute.explain(QUOTED[how](row["text"])) == cute.explain(row["text"]), row["id"]


def test_a_text_that_a_terminal_cut_is_joined() -> None:
    text = next(row["text"] for row in PASTES if row["id"] == "c-assert-neg").strip()
    cut = "\n".join(text[i : i + 80] for i in range(0, len(text), 80))
    assert cute.explain(cut) == cute.explain(text)


def test_what_a_cut_print_lacks_is_said() -> None:
    whole = cutlass(9, [512, 64], [2, 1024], [64, 32])
    cut = cute.explain(whole.split("interleave")[0])
    assert "Missing in the text\n  interleave, swizzle, l2_promotion, oob_fill (0 was assumed)" in cut
    shorter = cute.explain(whole.split("boxDim")[0])
    assert "an address was printed" not in shorter and "swizzle 0" not in shorter
    assert "Missing in the text\n  box_dim\n  interleave\n  swizzle" in shorter
    assert "Missing" not in cute.explain(whole)


def test_a_part_of_the_bytes_of_a_map_is_named() -> None:
    words = next(row["text"] for row in PASTES if row["id"] == "g-3")
    with pytest.raises(InvalidTypeError) as refused:
        cute.explain(words.split("desc[15]")[0])
    assert refused.value.facts["recognised"] == "numbers of a tensor map"
    assert refused.value.facts["size"] == "8 bytes fewer than 128"
    assert cute.explain(words.replace("\n", " ")) == cute.explain(words)  # the line breaks were lost
    assert [len(readings_of(f"{words}\n{words}"))] == [2]


CALL = """uint64_t globalDim[] = {1000, 512};
uint64_t globalStrides[] = {1000 * sizeof(__half) + 4};
uint32_t boxDim[] = {128, 64};
uint32_t elementStrides[] = {1, 1};
cuTensorMapEncodeTiled(&tmap, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void*)0x7f0000000008, globalDim, globalStrides,
    boxDim, elementStrides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
"""


def test_declarations_that_a_call_reads_are_no_map_of_their_own() -> None:
    """With the type and the swizzle of the call, three rules are broken; with the declarations alone, one was."""
    (reading,) = [one for one in readings_of(CALL) if "cuTensorMapEncodeTiled" in one.kind]
    assert {one.rule for one in reading.broken} == {"address_alignment", "stride_alignment", "inner_span"}
    said = str(cute.explain(CALL))
    assert said.count("A change that works") == 1 and "16 bits were assumed" not in said


def test_a_list_of_names_is_not_an_address() -> None:
    said = str(cute.explain(CALL.replace("{1000, 512}", "{WIDTH, HEIGHT}")))
    assert "global_dim (`{WIDTH, HEIGHT}` is not computed here: replace it with its numbers)" in said


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        ("tl.make_tensor_descriptor(p, [1024, 1024], [1024, 1], [128, 64])  # float16", []),
        (
            "d = TensorDescriptor(base=a, shape=[1000, 1004], strides=[1004, 1], block_shape=[128, 64])  # float16",
            ["stride_alignment"],
        ),
        ("make_tensor_descriptor(p, [1000, 1000], [1, 1000], [96, 64])  # bfloat16", ["power of 2", "contiguous mode"]),
        ("make_tensor_descriptor(p, [64, 64], [64, 1], [8, 4])  # float16", ["box_row"]),
        ("make_tensor_descriptor(p, [64, 64], [64, 1], [8, 1])", ["box_row"]),
        ("make_tensor_descriptor(p, [8192, 8192], [8192, 1], [2048, 1024])  # int8", ["block elements"]),
        ("TensorDescriptor(a, [64, 64], [64], [8, 4])", ["ranks"]),
    ],
)
def test_a_tensor_descriptor_of_triton(call: str, rules: list[str]) -> None:
    (reading,) = readings_of(call)
    assert reading.kind.startswith("A tensor descriptor of Triton")
    assert [one.rule for one in reading.broken] == rules


def test_the_type_of_a_tensor_descriptor_is_that_of_its_line_or_its_tensor() -> None:
    lines = [f"{x} = TensorDescriptor({x}, [1024, 500], [500, 1], [128, 64])  # {kind}" for x, kind in _TYPED.items()]
    one, two = readings_of("\n".join(lines))
    assert not one.broken and [rule.rule for rule in two.broken] == ["stride_alignment"]
    assigned = "out_dtype=torch.bfloat16\na = torch.randn(8, 1000, dtype=torch.float8_e4m3fn)\n"
    (reading,) = readings_of(assigned + "TensorDescriptor(a, [8, 1000], [1000, 1], [8, 128])")
    assert reading.kind.endswith("float8_e4m3fn") and [rule.rule for rule in reading.broken] == ["stride_alignment"]
    (reading,) = readings_of(assigned + "TensorDescriptor(b, [8, 1000], [1000, 1], [8, 128])")
    assert "of" not in reading.kind.removeprefix("A tensor descriptor of Triton") and not reading.broken


_TYPED = {"a": "float32", "c": "float16"}


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        ("make_tensor_descriptor(a, [2,2,2,2,2,64],[1024,512,256,128,64,1],[1,1,1,1,1,64]) # fp16", ["rank"]),
        ("make_tensor_descriptor(a, [64, 7], [7, 1], [8, 16])", ["stride_alignment"]),
        ("make_tensor_descriptor(a, [0, 64], [64, 1], [8, 16])", ["size"]),
        ("make_tensor_descriptor(a, [64, 64], [-64, 1], [8, 16])", ["stride_alignment"]),
    ],
)
def test_the_array_of_a_tensor_descriptor(call: str, rules: list[str]) -> None:
    (reading,) = readings_of(call)
    assert [one.rule for one in reading.broken] == rules


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("self.size(1) must be divisible by 16, but got self.size(1)=1000", "size(1) = 1000 is 62 x 16 + 8"),
        ("input.shape[1] must be divisible by 32, got input.shape[1] = 100", "shape[1] = 100 is 3 x 32 + 4"),
        ("input_partition_size = 1472 is not divisible by weight quantization block_k = 128.", "11 x 128 + 64"),
        ("num_heads (25) must be divisible by tp_size (4)", "num_heads = 25 is 6 x 4 + 1"),
    ],
)
def test_a_selected_mode_is_no_size(text: str, part: str) -> None:
    assert part in str(cute.explain(text))


def test_what_a_tensor_descriptor_of_triton_lacks() -> None:
    said = str(cute.explain("make_tensor_descriptor(p, [1000, 1000], [1000, 1], [128, 64])"))
    assert (
        "the strides are multiples of 16 bytes for elements of 16, 32, 64 bits" in said and "the element type" in said
    )
    said = str(cute.explain("TensorDescriptor.from_tensor(a, [128, BLOCK_K])"))
    assert "block_shape = [128, BLOCK_K]" in said and "the numbers of strides" in said


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("TensorMemoryLayout([128, 64], col_stride=1)", ("128 x 64", "contiguous")),
        ("ttgl.TensorMemoryLayout((64, 32), 2)", ("64 x 32", "2 element widths")),
        (
            "TensorMemoryLayout(block=(128, 64), col_stride=1, cta_split_num=[2, 1], two_ctas=True)",
            ("128 x 64", "rows are split over 2 CTAs", "two CTAs"),
        ),
        ("TensorMemoryLayout(block=[BM, BN], col_stride=1)", ("does not have the numbers",)),
        ("TensorMemoryScalesLayout()", ("scale factors",)),
    ],
)
def test_tensor_memory_of_gluon(text: str, parts: tuple[str, ...]) -> None:
    said = str(cute.explain(text))
    assert [part for part in parts if part not in said] == []
