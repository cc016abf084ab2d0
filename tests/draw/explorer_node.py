"""Run the page's engine in node, and compare two answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cute_py.draw.explorer import DEFAULTS, engine_source
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError
from cute_py.tma.atom.op import as_op

DRIVER = """
const lines = require("fs").readFileSync(0, "utf8").split("\\n").filter(Boolean);
for (const line of lines) {
  const { call, argument } = JSON.parse(line);
  console.log(JSON.stringify({ answer, ways, text, bytes }[call](argument)));
}
function bytes({ form, places }) {
  const atom = inspect(form);
  const instructions = tileInstructions(atom.work, BigInt(form.at));
  const rows = rowsOf(atom.plan, atom.request.swizzle);
  return places.map((byte) => {
    const way = wayOf(BigInt(byte), atom, instructions, rows);
    if (!way) return null;
    const numbers = (tree) => (Array.isArray(tree) ? tree.map(numbers) : Number(tree));
    const places = { address: way.address, before: way.before, after: way.byte, bank: way.bank };
    for (const name in places) places[name] = Number(places[name]);
    const { inside, instruction } = way;
    const tensor = way.logical && numbers(way.logical);
    return { ...places, tensor, coord: numbers(way.coord), at: numbers(way.at), inside, instruction };
  });
}
function ways(query) { return ({ ways: waysOut(inspect(query)), chain: chainOut(inspect(query), 6) }); }
function text(source) {
  const found = parseText(source);
  return Array.isArray(found) ? treeText(found) : String(found);
}
"""


def run(calls: list[tuple[str, Any]]) -> list[Any]:
    """The engine's results of calls (function, argument); the test is skipped where there is no node."""
    node = os.environ.get("CUTE_PY_NODE") or shutil.which("node")
    if node is None:
        pytest.skip("no node here to run the page's engine; CUTE_PY_NODE names one")
    asked = "\n".join(json.dumps({"call": call, "argument": argument}) for call, argument in calls)
    with TemporaryDirectory() as folder:
        script = Path(folder) / "engine.js"
        script.write_text(engine_source() + DRIVER, encoding="utf-8")
        done = subprocess.run([node, str(script)], input=asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:3000]
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask(forms: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The engine's answers."""
    return run([("answer", form) for form in forms])


def differences(want: Any, got: Any, where: str = "") -> list[str]:
    """Where two answers differ. Of a text that can't be read, only that it can't, and which, is compared."""
    if isinstance(want, dict) and isinstance(got, dict):
        if want.get("rule") == got.get("rule") == "ParseError":
            want, got = ({**data, "message": ""} for data in (want, got))
        return [d for k in {**want, **got} for d in differences(want.get(k), got.get(k), f"{where}.{k}")]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [d for i, pair in enumerate(zip(want, got, strict=True)) for d in differences(*pair, f"{where}[{i}]")]
    return [] if want == got and type(want) is type(got) else [f"{where}: expected {want!r}, got {got!r}"]


def covered(query: Mapping[str, str]) -> bool:
    """Whether the page's own engine can answer: tiles, one CTA an instruction, elements of whole bytes."""
    try:
        op = as_op(query.get("op", DEFAULTS["op"]))
        kinds = [as_dtype(query[name]) for name in ("dtype", "internal") if query.get(name)]
    except CuteError:
        return True
    return (op.row.mode, op.row.ctas) == ("tile", 1) and all(kind.bits >= 8 for kind in kinds)
