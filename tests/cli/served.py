"""Answers of a served explorer that fail, freeze or end their worker; workers import them by name."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any


def failing(query: Mapping[str, Any]) -> dict[str, Any]:
    raise ZeroDivisionError("integer division or modulo by zero")


def freezing(query: Mapping[str, Any]) -> dict[str, Any]:
    """One operation that holds Python's lock for hours, a sleep, or an end, where the query asks for it."""
    query = query.get("inputs", query)
    if query["gmem"] == "freeze":
        return {"never": 9**9**9}
    if query["gmem"].isdigit():
        time.sleep(int(query["gmem"]))
    if query["gmem"] == "end":
        os._exit(3)
    if query["gmem"] == "print":
        print("between the answers")
        os.write(1, b"between the answers\n")
    if query["gmem"] == "fill":
        return {"never": len(bytearray(1 << 40))}
    return {"pid": os.getpid()}
