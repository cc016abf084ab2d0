"""Programs of copies and barriers, written in Python.

The public names of this package are deprecated; the next minor version removes them from `cute_py.tma`.
"""
