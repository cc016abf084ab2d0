"""`cute-py serve`: the explorer in a browser, its answers checked by the library while one types."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from cute_py.draw.explorer import explorer_page
from cute_py.draw.explorer_answer import answer
from cute_py.errors import CuteError, InvalidValueError

PORT: Final = 8321
HOST: Final = "127.0.0.1"
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may load: nothing but itself, and answers from here."""


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "serve",
        help="the explorer as a local web page, checked by the library",
        description="Serves the page of 'cute-py draw --html' and, beside it, the library's own answer to what is "
        "typed; the page says whether the two agree. Stop with Ctrl-C.",
    )
    p.add_argument("--port", type=int, default=PORT, help="0 takes a free one; default %(default)s")
    p.add_argument("--host", default=HOST, help="address to listen at; default %(default)s, this machine only")
    p.add_argument("--json", action="store_true", help="where it listens, as JSON")
    p.set_defaults(run=run)


def query_of(text: str) -> dict[str, str]:
    """The fields of a query string.

    Raises:
        InvalidValueError: a field that is given twice, too many of them, or bytes that are no UTF-8.

    >>> query_of("gmem=8%3A_1&tile=")
    {'gmem': '8:_1', 'tile': ''}
    """
    try:
        lists = parse_qs(text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=32, errors="strict")
    except ValueError as error:
        raise InvalidValueError(f"no query string: {error}") from None
    twice = [name for name, values in lists.items() if len(values) > 1]
    if twice:
        raise InvalidValueError(f"field {twice[0]!r} is given {len(lists[twice[0]])} times")
    return {name: values[0] for name, values in lists.items()}


def refusal(error: CuteError) -> dict[str, Any]:
    """A typed error as JSON data."""
    facts = {name: str(value) for name, value in error.facts.items()}
    return {"error": {"type": type(error).__name__, "message": error.headline, "facts": facts, "hint": error.hint}}


class ExplorerHandler(BaseHTTPRequestHandler):
    """Answers GET of `/` with the page and of `/answer?...` with the library's answer."""

    server_version = "cute-py"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """The page, an answer, or 404."""
        parts = urlsplit(self.path)
        if parts.path in ("/", "/index.html"):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", explorer_page(served=True))
        elif parts.path == "/answer":
            self._answer(parts.query)
        else:
            self._json(HTTPStatus.NOT_FOUND, refusal(InvalidValueError(f"no page {parts.path!r}")))

    do_HEAD = do_GET

    def _answer(self, query: str) -> None:
        try:
            self._json(HTTPStatus.OK, answer(query_of(query)))
        except CuteError as error:
            self._json(HTTPStatus.BAD_REQUEST, refusal(error))
        except Exception as error:  # told to the page, which shows it
            told: dict[str, Any] = {
                "type": type(error).__name__,
                "message": f"the library failed: {error}",
                "facts": {},
                "hint": None,
            }
            self._json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": told})

    def _json(self, status: HTTPStatus, data: Mapping[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(data))

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not told."""


class ExplorerServer(ThreadingHTTPServer):
    """A server whose threads end with it; a reader who goes away is no error."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is not told; anything else as usual."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def make_server(host: str = HOST, port: int = PORT) -> ExplorerServer:
    """The server, listening and not yet answering; `serve_forever` answers.

    Args:
        port: 0 takes a free one, see `.server_port`.
    Raises:
        InvalidValueError: no such port or address, or another program has it.
    """
    if not 0 <= port <= 65_535:
        raise InvalidValueError(f"port {port}; must be 0 to 65535")
    try:
        return ExplorerServer((host, port), ExplorerHandler)
    except OSError as error:
        hint = "--port 0 takes a free one"
        raise InvalidValueError(f"can't listen at {host} port {port}: {error.strerror or error}", hint=hint) from None


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    server = make_server(options.host, options.port)
    host = f"[{options.host}]" if ":" in options.host else options.host
    url = f"http://{host}:{server.server_port}/"
    print(json.dumps({"url": url}) if options.json else f"the explorer is at {url} (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
