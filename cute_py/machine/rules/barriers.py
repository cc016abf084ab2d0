"""Rules of the judges of barriers, registers and descriptors, each with its reason and a suggested change.

The rule `hang` has one row for each cause, such as `hang, transaction bytes`. A rule that has a row of its own may have
other rows for causes.
"""

from __future__ import annotations

from typing import Final

from cute_py.diagnostics import reason_table

BARRIER_RULES: Final = reason_table(
    """
hang, transaction bytes | A phase completes when all arrivals were made and exactly the expected bytes have arrived.
  -> Expect the sum of the bytes of the copies that complete on the barrier in one phase, or issue the missing copy
  <- mbarrier, tx-count; expect-tx operation
hang, arrivals | The missing arrivals belong to threads that are waiting too.
  -> Look at where these threads wait: move their arrival before the wait, or make them wait for another phase
  <- mbarrier, phase completion
hang, no arrival | A phase completes when the number of arrivals reaches the count of mbarrier.init.
  -> Make a thread arrive at this barrier, or check the address of the arrivals that should complete its phase
  <- mbarrier, phase completion
hang, arrival count | A phase completes when the number of arrivals reaches the count of mbarrier.init.
  -> Initialise the barrier with the number of arrivals of one phase, or make the missing threads arrive
  <- mbarrier.init
hang, exited | Threads that have exited can't arrive.
  -> Give all threads the same number of rounds, or arrive before the exit
  <- mbarrier, phase completion
hang, parity | A parity names either the current phase or the phase before it.
  -> Start with parity 0 on a full barrier and with 1 on an empty barrier, and flip it every round
  <- mbarrier.test_wait, phaseParity
hang, completed too often | If a round has more arrivals or bytes than a phase needs, the barrier completes
  several phases.
  -> Initialise the barrier with the number of arrivals of one round
  <- mbarrier.init
hang, barrier count | A barrier of a CTA completes when as many threads have arrived as its instruction names.
  -> In one round, give every bar.sync and bar.arrive the same count: the number of threads that arrive
  <- bar, barrier
hang, barrier | Some threads of the CTA never reach the barrier.
  -> Make all threads of the CTA reach it, or use a named barrier with a count
  <- bar, barrier
hang, cluster barrier | A barrier of a cluster completes when all threads of its CTAs have arrived or exited.
  -> Make every CTA of the cluster arrive as often as its peers
  <- barrier.cluster
hang, divergent aligned instruction | All threads of a warp, or of a warpgroup, must execute an .aligned instruction.
  -> Move the instruction out of the branch, or make the condition the same for the whole warp
  <- .aligned
hang, lanes | An instruction with a mask waits for all lanes that the mask names.
  -> Name only the lanes that reach the instruction, or make the others reach it
  <- shfl.sync, vote.sync, bar.warp.sync
hang, loop | The loop waits for a value that no thread will change.
  -> Find the thread that should change the value that the loop reads
phase completed early | Bytes that land in the next phase complete that phase too early, and the error repeats.
  -> Before the copies of a phase are issued, expect the sum of their bytes
  <- mbarrier, tx-count; expect-tx operation
more bytes than expected | Copies deliver more bytes than the phase expects.
  -> Expect the sum of the bytes of the copies that complete on the barrier in one phase
  <- mbarrier, tx-count; expect-tx operation
expected bytes are missing | A phase expects bytes that no copy delivers.
  -> Expect only the bytes of copies that are issued, or issue the missing copy
  <- mbarrier, tx-count; expect-tx operation
too many arrivals | An arrival beyond the pending count is undefined.
  -> Initialise the barrier with the number of arrivals of one phase
  <- mbarrier.arrive
parity | A wait for a phase that completed earlier passes immediately, so it does not wait.
  -> Start with parity 0 on a full barrier and with 1 on an empty barrier, and flip it every round
  <- mbarrier.test_wait, phaseParity
mbarrier not initialised | Operations on an mbarrier need an mbarrier.init before them.
  -> Initialise the barrier, and make the other threads wait for the initialisation
  <- mbarrier.init
mbarrier initialised twice | An mbarrier that is in use must not be initialised again.
  -> Execute mbarrier.inval first, or initialise it once
  <- mbarrier.init
mbarrier used after inval | After mbarrier.inval the memory is ordinary data, not a barrier.
  -> Initialise it again, or invalidate it after its last use
  <- mbarrier.inval
mbarrier invalidated in use | A copy in flight will still signal the barrier.
  -> Wait for the phase of the copy first
  <- mbarrier.inval
mbarrier count | The count of mbarrier.init is 1 to 1048575.
  -> Initialise the barrier with the number of arrivals of one phase
  <- mbarrier.init
barrier count | The instructions of one round of a barrier must give the same count, a multiple of 32.
  -> In one round, give every bar.sync and bar.arrive the same count: the number of threads that arrive
  <- bar, barrier
round not ordered | A barrier of a CTA counts arrivals, not threads, so the round before must have ended in every run.
  -> Use a barrier with another number for each group of threads, or arrive after a wait that follows the round before
  <- bar, barrier
divergent aligned instruction | All threads of a warp, or of a warpgroup, must execute an .aligned instruction.
  -> Move the instruction out of the branch, or make the condition the same for the whole warp
  <- .aligned
divergent aligned instruction, incomplete warpgroup | All 128 threads of a warpgroup must execute a wgmma instruction:
  four warps of a CTA, the first with a number that is a multiple of 4.
  -> Launch CTAs with a multiple of 128 threads, or let only complete warpgroups reach the instruction
  <- wgmma.mma_async
exited before a barrier | A barrier without a count waits for all threads of the CTA.
  -> Make all threads reach the barrier before they exit, or give it a count
  <- bar, barrier
exited lanes | Threads that a mask names must execute the instruction.
  -> Name only the lanes that reach the instruction, or make all lanes reach it before they exit
  <- shfl.sync, vote.sync, bar.warp.sync
cluster barrier | A thread arrives at the barrier of its cluster before it waits for it.
  -> Execute barrier.cluster.arrive before barrier.cluster.wait
  <- barrier.cluster
register count | setmaxnreg accepts 24 to 256 registers in steps of 8, and the code of the warps must fit into them.
  -> Choose another count
  <- setmaxnreg
register direction | setmaxnreg.dec can't raise the count of registers, and setmaxnreg.inc can't lower it.
  -> Use the other action, or another count
  <- setmaxnreg
register pool | setmaxnreg.inc waits until the pool of the CTA has enough registers. Only setmaxnreg.dec fills the pool.
  -> Request fewer registers, or release more: the sum over all warps must not exceed the sum at launch
  <- setmaxnreg
descriptor swizzle | A product reads a tile with the swizzle of its descriptor. The tile must be written with the same
  swizzle.
  -> Give the descriptor the swizzle that the tile was written with
  <- wgmma, matrix descriptor
descriptor address | A descriptor applies its swizzle pattern relative to its start address.
  -> Start at the first row of the tile; advance along K by bytes within the width of the swizzle
  <- wgmma, matrix descriptor
tile read in part | A copy writes bytes that no product reads.
  -> Check the start address and the strides of the descriptors that read the tile
  <- wgmma, matrix descriptor
"""
)
"""Rule, or rule and cause, such as 'hang, parity' -> reason."""
