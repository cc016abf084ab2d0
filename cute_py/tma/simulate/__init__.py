"""Programs of copies and barriers, written in Python. The next minor version removes the names (`cute_py.tma`)."""
