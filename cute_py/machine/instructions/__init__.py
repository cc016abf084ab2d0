"""The instructions of the machine: one table for each family."""
