"""`python -m cute_py` runs the command line."""

import sys

from cute_py.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
