"""Read texts that C++, CuTe DSL, Python and this library print, and return objects."""

from cute_py.deprecations import export_public
from cute_py.notation.parse import parse as parse

export_public(__name__)
