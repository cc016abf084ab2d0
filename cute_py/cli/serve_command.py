"""`cute-py serve`: serve the playground to a browser; the library answers as you type.

This module decides which requests the server accepts, and limits their number; the processes of `serve_workers` answer
them.

The server is meant for one person at one machine, but any web page in that person's browser can send requests to it. So
a request must name this server in `Host` (another name that resolves to this machine is refused). If the browser
names the origin (`Origin`, `Sec-Fetch-Site`), the origin must be the server's own page. A request must also be small
enough that a person could have typed it. The number of threads, the idle time of a connection, and the time for an
answer are bounded.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import ipaddress
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from cute_py.argument_checks import expect, expect_integer
from cute_py.cli.arguments import integer, json_option
from cute_py.cli.serve_workers import ANSWER_SECONDS, Json, NoAnswer, Workers, plain_error, refusal
from cute_py.errors import CuteError, InvalidValueError, given, system_reason
from cute_py.page.document import explorer_page, policy

Request: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"
"""A connection as http.server passes it; for TCP always a socket."""
Address: TypeAlias = "tuple[str, int] | tuple[str, int, int, int]"
PORT: Final = 8321
HOST: Final = "127.0.0.1"
ANSWER: Final = "cute_py.page.served:answer_request"
MAX_QUERY: Final = 32_768
"""Largest query, in characters: three layouts of 2,000 characters, all escaped, and some room."""
MAX_FIELDS: Final = 32
MAX_BODY: Final = 1 << 19
"""Largest question, in bytes: a text of 65,536 characters, all escaped, and some room."""
MAX_CONNECTIONS: Final = 32
"""Largest number of connections; each has a thread."""
_TAKEN: Final = (errno.EADDRINUSE, errno.EACCES)
REQUEST_SECONDS: Final = 10.0
"""Seconds for a whole request to arrive."""


def _socket_of(request: Request) -> socket.socket:
    return request[1] if isinstance(request, tuple) else request


def query_of(text: str) -> dict[str, str]:
    """Parse a query string into its fields.

    Raises:
        InvalidValueError: a field appears twice, there are too many fields, or the bytes are not UTF-8.

    >>> query_of("gmem=8%3A_1&tile=")
    {'gmem': '8:_1', 'tile': ''}
    """
    if len(text) > MAX_QUERY:
        raise InvalidValueError(f"the query has {len(text)} characters; must have at most {MAX_QUERY}")
    try:
        lists = parse_qs(
            text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=MAX_FIELDS, errors="strict"
        )
    except ValueError as error:
        raise InvalidValueError(f"this is not a query string: {error}") from None
    twice = [name for name, values in lists.items() if len(values) > 1]
    if twice:
        raise InvalidValueError(f"field {given(twice[0])} appears {len(lists[twice[0]])} times")
    return {name: values[0] for name, values in lists.items()}


def body_of(data: bytes) -> dict[str, Any]:
    """Parse the question in the body of a request.

    Raises:
        InvalidValueError: the body is not a JSON object such as the page sends.

    >>> body_of(b'{"tab": "layout", "inputs": {}}')
    {'tab': 'layout', 'inputs': {}}
    """
    try:
        query = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"this is not JSON: {error}") from None
    if not isinstance(query, dict) or "tab" not in query:
        raise InvalidValueError("the question must be a JSON object with a tab and its inputs")
    return query


@functools.cache
def _page() -> str:
    return explorer_page(served=True)


@functools.cache
def _policy() -> str:
    return policy(served=True)


class ExplorerHandler(BaseHTTPRequestHandler):
    """Answers a GET of `/` with the page, and a GET of `/answer?...` with the library's answer."""

    server: ExplorerServer
    server_version = "cute-py"
    default_request_version = "HTTP/1.0"  # the answer to an unreadable request needs headers too
    sys_version = ""
    timeout = REQUEST_SECONDS

    def parse_request(self) -> bool:
        """Parse the request line and the headers, and note that they have arrived, which ends the time limit for their
        arrival."""
        try:
            return super().parse_request()
        finally:
            self.server.arrived(self.connection)

    def do_GET(self) -> None:
        """Send the page, an answer, or an error."""
        try:
            parts = urlsplit(self.path)
            path, query, netloc = parts.path, parts.query, parts.netloc
        except ValueError as error:  # not an address: http://[
            self._json(
                HTTPStatus.BAD_REQUEST,
                plain_error("InvalidValueError", f"{given(self.path)} is not an address: {error}"),
            )
            return
        status, reason = self._stranger(netloc, path == "/answer")
        if reason:
            self._json(status, plain_error("InvalidValueError", reason))
        elif path in ("/", "/index.html"):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", _page().encode())
        elif path == "/answer":
            self._answer(query)
        else:
            self._json(HTTPStatus.NOT_FOUND, refusal(InvalidValueError(f"the page {given(path)} does not exist")))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Send the answer to a question of the page, or an error."""
        status, reason = self._stranger("", True)
        kind, length = self.headers.get_content_type(), self.headers.get("Content-Length", "")
        if not reason and self.path != "/answer":
            status, reason = HTTPStatus.NOT_FOUND, f"the page {given(self.path)} does not exist"
        elif not reason and kind != "application/json":  # a form of another page can't send this type
            status, reason = (
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                (f"the question has the type {given(kind)}; must be JSON"),
            )
        elif not reason and not (length.isascii() and length.isdigit() and int(length[:9]) <= MAX_BODY):
            status, reason = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question must have at most {MAX_BODY} bytes"
        if reason:
            self.close_connection = True
            self._json(status, plain_error("InvalidValueError", reason))
        else:
            self._ask(lambda: body_of(self.rfile.read(int(length))))

    def _stranger(self, netloc: str, answer: bool) -> tuple[HTTPStatus, str]:
        """The HTTP status and the reason if this server must refuse the request; an empty reason if it must not."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            return HTTPStatus.BAD_REQUEST, f"the request has {len(hosts)} Host headers; must have one"
        for host in (hosts[0], netloc or hosts[0]):
            if not self.server.is_named(host):
                return HTTPStatus.FORBIDDEN, f"Host is {given(host)}; must be {self.server.url}"
        for origin in self.headers.get_all("Origin", []):
            scheme, _, host = origin.strip().partition("://")
            if scheme.lower() != "http" or not self.server.is_named(host):
                return HTTPStatus.FORBIDDEN, f"Origin is {given(origin)}, but this server answers only its own page"
        site = self.headers.get("Sec-Fetch-Site", "none").strip()
        if answer and site not in ("same-origin", "none"):  # an <img> of another page sends no Origin
            return HTTPStatus.FORBIDDEN, (
                f"the request comes from another page ({given(site)}); must come from this server's page"
            )
        return HTTPStatus.OK, ""

    def _answer(self, query: str) -> None:
        self._ask(lambda: query_of(query))

    def _ask(self, query: Callable[[], Mapping[str, Any]]) -> None:
        try:
            status, data = self.server.workers.ask(query())
        except CuteError as error:
            self._json(HTTPStatus.BAD_REQUEST, refusal(error))
        except NoAnswer as error:
            kind = "TimeoutError" if error.status == 504 else "NoAnswer"
            self._json(HTTPStatus(error.status), plain_error(kind, str(error)))
        else:
            self._send(HTTPStatus(status), "application/json", data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the errors of http.server itself, such as an unknown method, as JSON, like all other errors."""
        self.close_connection = True
        self._json(HTTPStatus(code), plain_error("InvalidValueError", message or HTTPStatus(code).phrase))

    def _json(self, status: HTTPStatus, data: Json) -> None:
        self._send(status, "application/json", json.dumps(data).encode())

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _policy())
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class ExplorerServer(ThreadingHTTPServer):
    """A threaded HTTP server whose threads end with it. It does not report clients that disconnect."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, family: int, address: Address, name: str, answer: str, seconds: float) -> None:
        self.address_family = family
        self._seats = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._arriving: dict[Request, float] = {}
        self._name = name.lower()
        self.workers = Workers(answer, seconds=seconds)
        super().__init__(address, ExplorerHandler)
        self.workers.start()

    def server_bind(self) -> None:
        """Bind like HTTPServer's method, but without its network query for this machine's name, which can be slow."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self._name, int(self.server_address[1])

    @property
    def _address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(str(self.server_address[0]))

    @property
    def url(self) -> str:
        """The address of the page."""
        name = self._name if self._name == "localhost" else str(self._address)
        return f"http://{f'[{name}]' if ':' in name else name}:{self.server_port}/"

    def is_named(self, host: str) -> bool:
        """Whether a `Host` header names this server: the name or address that it was started with, and its port.

        A server on a loopback address is also named localhost. A server on all interfaces accepts every address, but
        only the machine's own host names, because a web page could reach the server through another name.
        """
        try:
            parts = urlsplit(f"//{host.strip()}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if parts.netloc != host.strip() or "@" in host or (80 if port is None else port) != self.server_port:
            return False
        names = {self._name}
        if self._address.is_loopback or self._address.is_unspecified:
            names.add("localhost")
        if self._address.is_unspecified:
            names.add(socket.gethostname().lower())
        try:
            literal = ipaddress.ip_address(name)
        except ValueError:
            return name in names
        return bool(literal == self._address or self._address.is_unspecified)

    def process_request(self, request: Request, client_address: Address) -> None:
        """Start a thread for a request, or answer 503 if too many are running."""
        if not self._seats.acquire(blocking=False):
            with contextlib.suppress(OSError):
                connection = _socket_of(request)
                connection.settimeout(1)
                connection.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        self._arriving[request] = time.monotonic() + REQUEST_SECONDS
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave(request)
            raise

    def process_request_thread(self, request: Request, client_address: Address) -> None:
        """Handle a request in its own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _leave(self, request: Request) -> None:
        self.arrived(request)
        self._seats.release()

    def arrived(self, request: Request) -> None:
        """Note that the headers of a request have arrived, or never will."""
        self._arriving.pop(request, None)

    def service_actions(self) -> None:
        """Close the connections whose request has not arrived in time; the server calls this periodically."""
        now = time.monotonic()
        for request, end in list(self._arriving.items()):
            if now > end:
                with contextlib.suppress(OSError):
                    _socket_of(request).shutdown(socket.SHUT_RDWR)

    def server_close(self) -> None:
        """Stop listening, and end the workers."""
        super().server_close()
        self.workers.close()

    def handle_error(self, request: Request, client_address: Address) -> None:
        """Ignore a broken connection; report any other error as usual."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def make_server(
    host: str = HOST, port: int = PORT, *, answer: str = ANSWER, seconds: float = ANSWER_SECONDS
) -> ExplorerServer:
    """Make the server. It listens, and answers after `serve_forever` is called.

    Args:
        host: an IPv4 or IPv6 address of this machine, or a host name of this machine.
        port: 0 selects a free port; see `.server_port`.
        answer: the function that the workers call, as `module:function`; seconds: the time limit for one answer.
    Raises:
        InvalidValueError: the port or address does not exist, or is already in use.
    """
    name = expect(host, str, "host").strip()
    if not name:
        raise InvalidValueError(f"host = {given(host)}; must be an address such as {HOST} or ::1, or a name")
    expect_integer(port, "port", 0, 65_535)
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = sorted(found, key=lambda row: row[0] != socket.AF_INET)[0]
        if isinstance(address[1], bytes):  # a build without IPv6 returns its raw address
            raise OSError("this address family is not available")
        return ExplorerServer(family, address, name, answer, seconds)
    except (OSError, ValueError) as error:  # ValueError: a name that can't be resolved
        reason = system_reason(error)
        hint = "--port 0 selects a free port" if getattr(error, "errno", 0) in _TAKEN else None
        raise InvalidValueError(f"can't listen on {given(name)[1:-1]} port {port}: {reason}", hint=hint) from None


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Serves the playground, the page of 'cute-py draw --html', at a local address. The installed library computes "
        "the answers. The server accepts only requests to its own address from its own page. Stop it with Ctrl-C."
    )
    p.add_argument("--port", type=integer, default=PORT, help="0 selects a free port; default %(default)s")
    p.add_argument("--host", default=HOST, help="address to listen on, such as ::1; default %(default)s, this machine")
    json_option(p, run, "print the address as JSON")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    server = make_server(options.host, options.port)
    try:
        line = (
            json.dumps({"url": server.url}) if options.json else f"the playground is at {server.url} (Ctrl-C ends it)"
        )
        print(line, flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
