"""Emulate tensor memory: its cells, the copies of tcgen05.cp, and the operands and results of tcgen05.mma."""
