"""The built site in Chromium: blocks that are too wide, and screenshots.

    python -m tests.site_browser SITE FOLDER     # home, guide, how-to, reference, playground; three widths, two themes

Needs node, Chromium, and the npm package playwright-core in the folder that CUTE_PY_NODE_MODULES names.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SHOWN = {
    "home": "",
    "guide": "guide/layouts/",
    "howto": "howto/wrong-numbers/",
    "reference": "reference/algebra/",
    "notebook": "notebooks/one-gemm-tile/",
    "measurements": "measurements/gemm/",
    "playground": "playground.html",
}
"""Pages of a screenshot each."""
WIDTHS = (1440, 1280, 390)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on a server of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def playwright() -> Path | None:
    """The npm package, where node and it are here."""
    folder = Path(os.environ.get("CUTE_PY_NODE_MODULES", Path.cwd() / "node_modules")) / "playwright-core"
    return folder if shutil.which("node") and folder.is_dir() else None


def run(site: Path, chromium: str, plan: Mapping[str, Any]) -> list[Any]:
    """What the browser prints for a plan (tests/site_browser.mjs)."""
    script = Path(__file__).with_suffix(".mjs")
    with TemporaryDirectory() as folder, served(site) as url:
        file = Path(folder) / "plan.json"
        file.write_text(json.dumps(plan))
        command = ["node", str(script), str(playwright()), chromium, url, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    site, shots = map(Path, sys.argv[1:3])
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or playwright() is None:
        raise SystemExit("needs node, Chromium and playwright-core; CUTE_PY_NODE_MODULES names the folder of packages")
    shots.mkdir(parents=True, exist_ok=True)
    pages = {name: path for name, path in SHOWN.items() if (site / path).exists()}
    run(site, chromium, {"shots": str(shots.resolve()), "pages": pages, "widths": WIDTHS})
    print(f"{len(list(shots.glob('*.png')))} pictures in {shots}")


if __name__ == "__main__":
    main()
