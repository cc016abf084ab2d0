"""Tensor memory: its cells, what tcgen05.cp copies into them, and what tcgen05.mma reads and writes there."""
