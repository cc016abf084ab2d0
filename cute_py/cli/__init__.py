"""The command line `cute-py`."""

from cute_py.cli.main import main

__all__ = ["main"]
