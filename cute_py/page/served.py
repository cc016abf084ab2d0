"""Answer a server: `cute-py serve` starts its workers with this module.

It loads the modules of all tabs when it is imported, before a worker says that it is ready. The time limit of an answer
therefore counts only its computation, and the first answer of a tab takes no longer than the next.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from cute_py.draw.explorer_answer import answer_query
from cute_py.page.answer import answer_page
from cute_py.page.forms import TABS

for _tab in TABS.values():
    importlib.import_module(f"cute_py.page.{_tab.module}")


def answer_request(query: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question of the page, or a form of a copy for `explorer_answer`.

    Raises:
        CuteError: the question is malformed.
    """
    return answer_page(query) if "tab" in query else answer_query(query)
