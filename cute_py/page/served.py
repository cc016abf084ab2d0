"""Answer requests in a worker of `cute-py serve`, which starts its workers with this module.

When the module is imported, it answers two examples of each tab, before the worker reports that it is ready. This loads
the modules and tables, so the first answer of a tab takes no longer than later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cute_py.draw.explorer_answer import answer_query
from cute_py.page.answer import answer_page
from cute_py.page.forms import TABS

for _tab in TABS.values():
    for _, _inputs in (_tab.examples[0], _tab.examples[-1]):
        answer_page({"tab": _tab.name, "inputs": _inputs})


def answer_request(query: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question of the page, or a form of a TMA copy for `explorer_answer`.

    Raises:
        CuteError: the question is malformed.
    """
    return answer_page(query) if "tab" in query else answer_query(query)
