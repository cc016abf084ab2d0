"""Parsers of the texts that CuTe C++, CuTe DSL, Triton, Python and cute_py print."""

from cute_py.deprecations import export_public
from cute_py.notation.parse import parse as parse

export_public(__name__)
