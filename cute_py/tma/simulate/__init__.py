"""Programs of copies and barriers that Python states. The names end with the next minor version (`cute_py.tma`)."""
