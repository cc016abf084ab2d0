"""Forms of the explorer with symbols and numbers that no tile has: the answer names them."""

from cute_py.draw.explorer_answer import answer_query
from tests.each import each_of

HUGE = "1" + "0" * 30
FORMS = [
    {"smem": "(_128,_64):(x_64,_1)"},
    {"smem": "(_128,_64):(х_64,_1)"},
    {"smem": "(_128,_64):(n,_1)"},
    {"smem": f"(_{HUGE},_64):(_64,_1)"},
    {"smem": f"(_128,_64):(_{HUGE},_1)"},
    {"gmem": f"({HUGE},128):(128,_1)"},
    {"gmem": f"(256,128):(_{HUGE},_1)"},
    {"gmem": "(n,128):(128,_1)"},
    {"tile": f"(_{HUGE},_64)"},
    {"tile": "(x,_64)"},
    {"multicast": HUGE},
    {"smem": "(_128,_64):(_64,_1)\ud800"},
]


@each_of("form", FORMS, ids=ascii)
def test_what_no_copy_has_is_a_problem(form: dict[str, str]) -> None:
    whole = {"gmem": "(256,128):(128,_1)", "smem": "(_128,_64):(_64,_1)"}
    assert answer_query(whole)["problems"] == []
    found = answer_query(whole | form)
    assert found["problems"]
    assert found["samples"] is None
