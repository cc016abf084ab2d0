"""python -m tests.characterisation [--record]"""

from __future__ import annotations

import sys

from tests.characterisation.compare import RECORDED, differing
from tests.characterisation.said import TEXTS, as_text, environment, refusals


def main() -> int:
    """Compare, or record with --record."""
    if "--record" not in sys.argv[1:]:
        lines = [line for name in TEXTS for line in differing(name)]
        print("\n".join(lines))
        return 1 if lines else 0
    (RECORDED / "environment.txt").write_text(f"{environment()}\n", encoding="utf-8")
    for name, make in TEXTS.items():
        found = make()
        if make is refusals:  # what another run says otherwise is not the package's alone
            again = make()
            found = {call: said for call, said in found.items() if again.get(call) == said}
        (RECORDED / f"{name}.txt").write_text(as_text(found), encoding="utf-8", errors="backslashreplace")
        print(f"{name}: {len(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
