"""`cute-py serve`: page and answers over a real socket, refusals as JSON, one line for a port that is taken."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode

import pytest

from cute_py.cli import serve_command
from cute_py.cli.serve_command import make_server, query_of
from cute_py.draw.explorer import explorer_page
from cute_py.draw.explorer_answer import answer
from cute_py.draw.explorer_facts import EXAMPLES
from cute_py.errors import InvalidValueError
from tests.cli.test_commands import shell
from tests.draw.explorer_browser import dumped

TIMEOUT = 20
FORM = {"gmem": "(256,100):(100,_1)", "smem": "(_64,_32):(_32,_1)"}


@pytest.fixture
def port() -> Iterator[int]:
    """A server at a free port of this machine, in a thread of its own."""
    server = make_server(port=0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join(TIMEOUT)


def get(port: int, path: str, method: str = "GET") -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request(method, path)
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply, body


def asked(port: int, fields: dict[str, str]) -> tuple[int, Any]:
    reply, body = get(port, f"/answer?{urlencode(fields)}")
    assert reply.headers["Content-Type"] == "application/json"
    return reply.status, json.loads(body)


def test_the_page(port: int) -> None:
    reply, body = get(port, "/")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert body.decode() == explorer_page(served=True)
    head, nothing = get(port, "/", "HEAD")
    assert (head.status, head.headers["Content-Length"], nothing) == (200, str(len(body)), b"")


@pytest.mark.parametrize("form", [form for _, form in EXAMPLES], ids=[name for name, _ in EXAMPLES])
def test_answers_are_the_librarys(port: int, form: dict[str, str]) -> None:
    assert asked(port, form) == (200, json.loads(json.dumps(answer(form))))


def test_what_the_page_alone_does_not_answer(port: int) -> None:
    status, data = asked(
        port, {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_64,_1)", "dtype": "u4", "internal": "u8"}
    )
    assert status == 200
    assert data["plan"]["g_stride"] == "(_1@1,_1/_2@0)"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "no field 'gmem'"),
        ("gmem=8:_1", "no field 'smem'"),
        ("gmem=8:_1&smem=_8:_1&colour=red", "unknown field 'colour'"),
        ("gmem=8:_1&gmem=8:_1&smem=_8:_1", "field 'gmem' is given 2 times"),
        ("gmem", "no query string: bad query field: 'gmem'"),
        (
            "gmem=%ff&smem=_8:_1",
            "no query string: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        ("&".join(f"f{i}=1" for i in range(40)), "no query string: Max number of fields exceeded"),
    ],
)
def test_bad_queries_are_refused_with_a_typed_error(port: int, query: str, message: str) -> None:
    reply, body = get(port, f"/answer?{query}")
    assert reply.status == 400
    error = json.loads(body)["error"]
    assert (error["type"], error["message"]) == ("InvalidValueError", message)


def test_other_addresses_and_methods(port: int) -> None:
    reply, body = get(port, "/etc/passwd")
    assert (reply.status, json.loads(body)["error"]["message"]) == (404, "no page '/etc/passwd'")
    assert get(port, "/answer", "POST")[0].status == 501


def test_a_failure_of_the_library_is_told(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_command, "answer", lambda query: 1 // 0)
    status, data = asked(port, FORM)
    assert (status, data["error"]["type"]) == (500, "ZeroDivisionError")


def test_a_reader_who_goes_away_is_no_error(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as reader:
        reader.sendall(b"GET /answer?gmem=8 HTTP/1.0\r\n")
    assert asked(port, FORM)[0] == 200
    assert capsys.readouterr().err == ""


def test_query_of() -> None:
    assert query_of(urlencode({"smem": "Sw<3,4,3> o _0 o (_8):(_1)", "tile": ""})) == {
        "smem": "Sw<3,4,3> o _0 o (_8):(_1)",
        "tile": "",
    }


def test_a_taken_port_is_one_line(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = shell(capsys, "serve", "--port", str(port))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"can't listen at 127.0.0.1 port {port}: Address already in use" in err


@pytest.mark.parametrize("number", [-1, 65_536])
def test_no_such_port(number: int) -> None:
    with pytest.raises(InvalidValueError, match=f"port {number}; must be 0 to 65535"):
        make_server(port=number)


@pytest.mark.parametrize("json_", [False, True])
def test_ctrl_c_ends_it(json_: bool) -> None:
    command = [sys.executable, "-m", "cute_py", "serve", "--port", "0", *(["--json"] if json_ else [])]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = json.loads(line)["url"] if json_ else re.search(r"http://\S+/", line)[0]  # type: ignore[index]
            number = int(url.rstrip("/").rpartition(":")[2])
            assert asked(number, FORM)[0] == 200
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")


def test_the_served_page_says_that_python_agrees(port: int) -> None:
    root = dumped(f"http://127.0.0.1:{port}/#{urlencode(FORM)}")
    assert root.by_id("checked").text == "checked by Python: the same answer"
    assert root.by_id("verdict").text == "Refused: 1 problem"


def test_the_served_page_shows_python_where_it_has_no_answer(port: int) -> None:
    form = {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_64,_1)", "dtype": "uint4", "internal": "uint8"}
    root = dumped(f"http://127.0.0.1:{port}/#{urlencode(form)}")
    assert root.by_id("checked").text == "answered by Python; this page alone can't"
    assert "_1/_2@0" in root.by_id("numbers").text


def test_a_difference_is_loud(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_command, "answer", lambda query: {**answer(query), "gbasis": "(_1):(_1@0)"})
    checked = dumped(f"http://127.0.0.1:{port}/#{urlencode(FORM)}").by_id("checked")
    assert checked.attributes["class"] == "bad"
    assert checked.text.startswith("PYTHON DIFFERS from this page in 1 place(s).")
    assert 'gbasis: Python "(_1):(_1@0)", this page "(_32,_64):(_1@1,_1@0)"' in checked.text
