"""The instructions that the machine emulates: builders for each family of instructions."""
