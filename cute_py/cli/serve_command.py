"""`cute-py serve`: the explorer in a browser, its answers checked by the library while one types."""

from __future__ import annotations

import argparse
import json
from typing import Any

from cute_py.cli.argument_types import integer
from cute_py.cli.serve_http import HOST, PORT, make_server


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "serve",
        help="the explorer as a local web page, checked by the library",
        description="Serves the page of 'cute-py draw --html' and, beside it, the library's own answer to what is "
        "typed; the page says whether the two agree. It answers requests that name it as it was started and that come "
        "from its own page. Stop with Ctrl-C.",
    )
    p.add_argument("--port", type=integer, default=PORT, help="0 takes a free one; default %(default)s")
    p.add_argument("--host", default=HOST, help="address to listen at, such as ::1; default %(default)s, this machine")
    p.add_argument("--json", action="store_true", help="where it listens, as JSON")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    server = make_server(options.host, options.port)
    try:
        line = json.dumps({"url": server.url}) if options.json else f"the explorer is at {server.url} (Ctrl-C ends it)"
        print(line, flush=True)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return 0
