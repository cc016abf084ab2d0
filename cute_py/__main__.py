"""Entry point of `python -m cute_py`, which runs the command line `cute-py`."""

import sys

from cute_py.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
