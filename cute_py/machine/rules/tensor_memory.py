"""Rules about tensor memory, each with its reason, a suggested change, and the section of the PTX ISA."""

from __future__ import annotations

from typing import Final

from cute_py.diagnostics import reason_table

TENSOR_RULES: Final = reason_table(
    """
tensor memory | tcgen05.alloc reserves columns, and a warp reaches the 32 lanes of its rank in the warpgroup.
  -> Allocate the columns first, use the lanes of the warp, and free every allocation before the kernel ends
  <- tensor memory allocation; tcgen05.ld, access restrictions
tensor memory race | Products and copies are complete when a later commit has arrived. Loads are complete after
  wait::ld, and stores after wait::st.
  -> Execute tcgen05.commit and wait for its mbarrier, or execute tcgen05.wait, before the access
  <- tcgen05 memory consistency model
missing tcgen05 fence | Threads that pass tensor memory to each other need a fence on each side of their
  synchronisation.
  -> Execute tcgen05.fence::before_thread_sync before the arrival, and tcgen05.fence::after_thread_sync after the wait
  <- tcgen05.fence; tcgen05 memory consistency model
instruction descriptor | The 32 bits encode types, extents and major modes, and each kind supports only some values.
  -> Make the descriptor for the kind, the cta_group and the extents of the instruction
  <- tcgen05, instruction descriptor
tcgen05.mma operand | The matrix descriptors and addresses give the locations of A, B, D and the scales.
  -> Compare the descriptors with the layouts of the buffers
  <- tcgen05, matrix descriptor; data path layouts
cta_group | A pair of CTAs is two CTAs of a cluster whose ranks differ in the last bit.
  -> Launch clusters of an even number of CTAs
  <- tcgen05, CTA pair
tensor memory never written | Newly allocated columns have no defined value.
  -> Make the first product overwrite D (with enable-input-d false), or store to D first
  <- tensor memory allocation; tcgen05.mma, enable-input-d
collector buffer not filled | A product can read A or B from a collector buffer only after an earlier product filled it.
  -> First execute a product with .fill of the same operand, without .lastuse or .discard between the two
  <- tcgen05.mma, collector usage
scale factors | A block-scaled product multiplies the rows of A and B by the factors in the columns that it names.
  -> Name the columns that tcgen05.cp copies the factors of that operand to
  <- tcgen05.mma, block scaling; layouts of scale factors
scale selector | The selector of mma.sync names the byte and the lanes of the register that holds the scale factors.
  -> Use a byte that is a multiple of the factors of a row, one of 2 pairs of lanes for A, and one of 4 lanes for B
  <- mma, block scaling
larger allocation than before | The number of columns may not increase from one tcgen05.alloc of a CTA to the next.
  -> Allocate the largest number first, or allocate once
  <- tcgen05.alloc
"""
)
"""Rule -> reason."""
