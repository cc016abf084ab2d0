"""The instructions of the machine, a table a family."""
