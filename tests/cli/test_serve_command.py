"""`cute-py serve`: page and answers over a real socket, refusals as JSON, one line for a port that is taken."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode

import pytest

from cute_py.cli import serve_command as serve_http
from cute_py.cli.serve_command import make_server, query_of
from cute_py.draw.explorer_answer import EXAMPLES, answer_query
from cute_py.errors import CuteError, InvalidValueError
from cute_py.page.answer import answer_page
from cute_py.page.document import explorer_page
from cute_py.page.forms import TABS
from tests.cli.test_commands import shell
from tests.draw.explorer_browser import dumped
from tests.refusals import is_refusal
from tests.shares import one_in

TIMEOUT = 60
FORM = {"gmem": "(256,100):(100,_1)", "smem": "(_64,_32):(_32,_1)"}


@contextmanager
def serving(**options: Any) -> Iterator[int]:
    """The port of a server of this machine, in a thread of its own."""
    server = make_server(**{"port": 0, **options})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(TIMEOUT)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as number:
        yield number


def get(
    port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None, host: str = "127.0.0.1"
) -> tuple[HTTPResponse, bytes]:
    with closing(HTTPConnection(host, port, timeout=TIMEOUT)) as connection:
        connection.request(method, path, headers=headers or {})
        reply = connection.getresponse()
        return reply, reply.read()


def raw(port: int, request: bytes) -> tuple[int, Any]:
    """Status and JSON of a request as it is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
        connection.sendall(request)
        reply = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"X-Content-Type-Options: nosniff" in head
    return int(head.split()[1]), json.loads(body)


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
    assert asked(port, form) == (200, json.loads(json.dumps(answer_query(form))))


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
        ("gmem=8:_1&gmem=8:_1&smem=_8:_1", "field 'gmem' appears 2 times"),
        ("gmem", "this is not a query string: bad query field: 'gmem'"),
        (
            "gmem=%ff&smem=_8:_1",
            "this is not a query string: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        ("&".join(f"f{i}=1" for i in range(40)), "this is not a query string: Max number of fields exceeded"),
    ],
)
def test_bad_queries_are_refused_with_a_typed_error(port: int, query: str, message: str) -> None:
    reply, body = get(port, f"/answer?{query}")
    assert reply.status == 400
    error = json.loads(body)["error"]
    assert (error["type"], error["message"]) == ("InvalidValueError", message)


def test_other_addresses_and_methods(port: int) -> None:
    reply, body = get(port, "/etc/passwd")
    assert (reply.status, json.loads(body)["error"]["message"]) == (404, "the page '/etc/passwd' does not exist")
    assert get(port, "/answer", "PUT")[0].status == 501


def posted(port: int, query: Any, headers: dict[str, str] | None = None, path: str = "/answer") -> tuple[int, Any]:
    body = query if isinstance(query, bytes) else json.dumps(query).encode()
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)) as connection:
        connection.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


@pytest.mark.parametrize("name", list(TABS))
def test_questions_of_the_page(port: int, name: str) -> None:
    query = {"tab": name, "inputs": TABS[name].examples[-1][1]}
    assert posted(port, query) == (200, json.loads(json.dumps(answer_page(query))))


@pytest.mark.parametrize(
    ("query", "headers", "path", "status", "words"),
    [
        (b"{", {}, "/answer", 400, "not JSON"),
        (b"[" * 100_000, {}, "/answer", 400, "not JSON"),
        ([], {}, "/answer", 400, "the question must be a JSON object with a tab and its inputs"),
        ({"inputs": {}}, {}, "/answer", 400, "the question must be a JSON object with a tab and its inputs"),
        ({"tab": "x"}, {}, "/answer", 400, "unknown tab 'x'"),
        ({"tab": "tma", "inputs": {"colour": "red"}}, {}, "/answer", 400, "unknown field 'colour'"),
        ({"tab": "tma", "inputs": {"gmem": 8}}, {}, "/answer", 400, "inputs must map names to texts"),
        ({"tab": "tma", "part": "all"}, {}, "/answer", 400, "unknown part 'all'"),
        ({"tab": "layout", "inputs": {"layout": "1" * 2001}}, {}, "/answer", 400, "layout has 2001 characters"),
        ({"tab": "layout"}, {}, "/", 404, "the page '/' does not exist"),
        ({"tab": "layout"}, {"Content-Type": "text/plain"}, "/answer", 415, "must be JSON"),
        ({"tab": "layout"}, {"Content-Length": "9" * 30}, "/answer", 413, "a question must have at most"),
        ({"tab": "layout"}, {"Content-Length": "-1"}, "/answer", 413, "a question must have at most"),
        ({"tab": "layout"}, {"Host": "example.com"}, "/answer", 403, "Host is 'example.com'"),
        ({"tab": "layout"}, {"Origin": "http://example.com"}, "/answer", 403, "Origin is 'http://example.com'"),
        ({"tab": "layout"}, {"Sec-Fetch-Site": "cross-site"}, "/answer", 403, "the request comes from another page"),
    ],
)
def test_questions_that_are_refused(
    port: int, query: Any, headers: dict[str, str], path: str, status: int, words: str
) -> None:
    found, data = posted(port, query, headers, path)
    assert (found, words in data["error"]["message"]) == (status, True), data


def test_a_failure_of_the_library_is_told() -> None:
    with serving(answer="tests.cli.served:failing") as port:
        status, data = asked(port, FORM)
    assert (status, data["error"]["type"]) == (500, "ZeroDivisionError")


def test_a_frozen_worker_is_ended_and_others_are_served() -> None:
    """One that holds its processor, then all four at once: each is ended and replaced, and every other asker served."""
    with serving(answer="tests.cli.served:freezing", seconds=2) as port, ThreadPoolExecutor(8) as threads:
        pids = {data["pid"] for _, data in threads.map(lambda _: asked(port, {"gmem": "1"}), range(4))}
        frozen = threads.submit(asked, port, {"gmem": "freeze"})
        served = 0
        while served < 10 and not frozen.done():
            assert asked(port, FORM)[0] == 200
            assert get(port, "/")[0].status == 200
            served += not frozen.done()
        assert served
        status, data = frozen.result()
        assert (status, data["error"]["type"]) == (504, "TimeoutError")
        assert data["error"]["message"] == "no answer within 2 s; the worker was stopped"
        assert len([pid for pid in pids if alive(pid)]) == len(pids) - 1
        all_four = [threads.submit(asked, port, {"gmem": "600"}) for _ in range(4)]
        time.sleep(0.2)
        assert asked(port, FORM)[0] == 200  # waits for the first that is replaced
        assert [one.result()[0] for one in all_four] == [504] * 4
        last = asked(port, FORM)[1]["pid"]
        assert last not in pids
    assert not any(map(alive, [*pids, last]))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_that_ends_prints_or_asks_for_all_memory() -> None:
    with serving(answer="tests.cli.served:freezing") as port:
        status, data = asked(port, {"gmem": "end"})
        assert (status, data["error"]["message"]) == (500, "the worker process ended without an answer")
        assert asked(port, {"gmem": "print"})[0] == 200
        status, data = asked(port, {"gmem": "fill"})
        assert (status, data["error"]["type"]) == (500, "MemoryError")
        assert asked(port, FORM)[0] == 200


def test_workers_end_with_a_server_that_is_killed() -> None:
    script = (
        "from cute_py.cli.serve_command import make_server; import threading; s = make_server(port=0, "
        "answer='tests.cli.served:freezing', seconds=1); print(s.server_port, flush=True); s.serve_forever()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        with ThreadPoolExecutor(1) as threads:
            pid = asked(number, FORM)[1]["pid"]
            frozen = threads.submit(asked, number, {"gmem": "freeze"})
            time.sleep(0.3)
            process.kill()
            with pytest.raises((ConnectionError, HTTPException)):
                frozen.result()
    until = time.monotonic() + TIMEOUT
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not alive(pid)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "LocalHost:{port}", "Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Host": "example.com:{port}"}, 403),
        ({"Host": "example.com"}, 403),
        ({"Host": "localhost"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "127.0.0.2:{port}"}, 403),
        ({"Host": "[::1]:{port}"}, 403),
        ({"Host": "localhost:{port}x"}, 403),
        ({"Host": "localhost:{port}/"}, 403),
        ({"Host": "a@localhost:{port}"}, 403),
        ({"Host": "["}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://example.com"}, 403),
        ({"Origin": "https://localhost:{port}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:{port}.example.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_who_may_ask(port: int, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(port=port) for name, value in headers.items()}
    reply, body = get(port, f"/answer?{urlencode(FORM)}", headers=sent)
    assert reply.status == status
    assert ("error" in json.loads(body)) == (status != 200)
    page = get(port, "/", headers=sent)[0].status
    assert page == (200 if "cross-site" in sent.values() or "same-site" in sent.values() else status)  # a link to it


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (b"GET http://[/x HTTP/1.0\r\nHost: {host}\r\n\r\n", 400, "'http://[/x' is not an address"),
        (b"GET //[/x HTTP/1.0\r\nHost: {host}\r\n\r\n", 404, "does not exist"),
        (b"GET http://example.com/ HTTP/1.0\r\nHost: {host}\r\n\r\n", 403, "Host is 'example.com'"),
        (b"GET / HTTP/1.0\r\n\r\n", 400, "0 Host headers"),
        (b"GET / HTTP/1.0\r\nHost: {host}\r\nHost: {host}\r\n\r\n", 400, "2 Host headers"),
        (b"GET / HTTP/9.9\r\n\r\n", 505, "Invalid HTTP version"),
        (b"GET\r\n\r\n", 400, "Bad request syntax"),
        (b"<script>\r\n\r\n", 400, "Bad request syntax"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.0\r\n\r\n", 414, "URI Too Long"),
        (b"GET /answer?a=" + b"1" * 40_000 + b" HTTP/1.0\r\nHost: {host}\r\n\r\n", 400, "has 40002 characters"),
        (b"GET / HTTP/1.0\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431, "Too many headers"),
    ],
)  # fmt: skip
def test_malformed_requests(port: int, request_: bytes, status: int, words: str) -> None:
    found, data = raw(port, request_.replace(b"{host}", f"127.0.0.1:{port}".encode()))
    assert found == status
    assert words in data["error"]["message"]


@pytest.mark.parametrize("name", ["address", "multicast", "at", "arch", "dtype", "op", "split"])
def test_five_thousand_digits(port: int, name: str) -> None:
    status, data = asked(port, {**FORM, name: "7" * 5000})
    assert status == 400
    assert data["error"]["message"] == f"field {name!r} of 5000 characters; must be at most 132"
    status, data = asked(port, {**FORM, name: "0x" + "f" * 130})
    assert status == 200
    assert len(json.dumps(data["problems"])) < 4000


def test_connections_are_bounded(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT))
            for _ in range(serve_http.MAX_CONNECTIONS + 8)
        ]
        time.sleep(0.5)
        assert silent[-1].recv(100).startswith(b"HTTP/1.0 503 ")
    time.sleep(0.3)
    assert asked(port, FORM)[0] == 200


def test_a_request_that_drips_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_http, "REQUEST_SECONDS", 0.5)
    ended = False
    with serving() as port, socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as slow:
        for _ in range(10 * TIMEOUT):
            try:
                slow.sendall(b"G")
            except ConnectionError:
                ended = True
                break
            time.sleep(0.1)
    assert ended


def test_ipv6() -> None:
    try:
        with serving(host="::1", answer="tests.cli.served:freezing") as port:
            assert get(port, f"/answer?{urlencode(FORM)}", host="::1")[0].status == 200
            assert get(port, "/", headers={"Host": f"localhost:{port}"}, host="::1")[0].status == 200
            assert get(port, "/", headers={"Host": f"127.0.0.1:{port}"}, host="::1")[0].status == 403
            server = make_server("::1", 0)
            server.server_close()
            assert server.url == f"http://[::1]:{server.server_port}/"
    except InvalidValueError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_all_interfaces_take_addresses_and_no_foreign_name() -> None:
    with serving(host="0.0.0.0") as port:
        for host, status in (("127.0.0.1", 200), ("10.1.2.3", 200), ("localhost", 200), ("example.com", 403)):
            assert get(port, "/", headers={"Host": f"{host}:{port}"})[0].status == status


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("", "host = ''; must be an address"),
        ("  ", "host = '  '; must be an address"),
        ("a\0b", "can't listen on a"),
        ("x" * 300, "can't listen on x"),
        ("256.1.1.1", "can't listen on 256.1.1.1"),
        ("192.0.2.1", "can't listen on 192.0.2.1"),
        (None, "host must be a str"),
    ],
)
def test_no_such_host(host: Any, words: str) -> None:
    with pytest.raises(CuteError) as refused:
        make_server(host, 0)
    assert words in str(refused.value)


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
    assert (status, out, is_refusal(err)) == (2, "", True)
    assert f"can't listen on 127.0.0.1 port {port}: Address already in use" in err


@pytest.mark.parametrize("number", [-1, 65_536, 1 << 20_000, "80", None, True], ids=lambda n: type(n).__name__)
def test_no_such_port(number: Any) -> None:
    with pytest.raises(CuteError, match=r"^port (= .*; must be 0 to 65535|must be an integer, got)"):
        make_server(port=number)


@pytest.mark.parametrize("json_", one_in(2, [False, True]))
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


@pytest.mark.slow
def test_the_served_page_shows_the_answer(port: int) -> None:
    root = dumped(f"http://127.0.0.1:{port}/#tab=tma&{urlencode(FORM)}")
    assert root.by_id("verdict").text == "Refused: globalStrides[0] = 200 bytes; must be a multiple of 16"
    assert "pad the row to 104 elements" in root.by_id("problems").text


@pytest.mark.slow
def test_a_frozen_answer_is_told() -> None:
    with serving(answer="tests.cli.served:freezing", seconds=1) as port:
        root = dumped(f"http://127.0.0.1:{port}/#tab=tma&gmem=freeze")
    assert root.by_id("verdict").text == "no answer within 1 s; the worker was stopped"
