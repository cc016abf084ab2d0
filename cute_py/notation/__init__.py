"""Parsers for the printed output of CuTe C++, CuTe DSL, Triton, Python and cute_py."""

from cute_py.deprecations import export_public
from cute_py.notation.parse import parse as parse

export_public(__name__)
