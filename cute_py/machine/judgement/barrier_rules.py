"""The rules of the judges of barriers, registers and descriptors: why each rule is one, and what to change.

A hang has a cause, one row each: `hang, transaction bytes`.
"""

from __future__ import annotations

from typing import Final

from cute_py.diagnostics import reason_table

BARRIER_RULES: Final = reason_table(
    """
hang, transaction bytes | A phase ends when its arrivals are in and exactly the bytes that it expects have come.
  -> Expect the sum of the bytes of the copies that complete on the barrier in one phase, or issue the missing copy
  <- mbarrier, tx-count; expect-tx operation
hang, arrivals | The threads that bring the missing arrivals wait themselves.
  -> Look at where they wait: an arrival that they make later must come earlier, or they wait for another phase
  <- mbarrier, phase completion
hang, arrival count | A phase ends when as many arrivals have come as mbarrier.init counts.
  -> Initialise the barrier with the number of arrivals of one phase, or let the missing threads arrive
  <- mbarrier.init
hang, exited | Threads that have exited arrive no more.
  -> Give all threads the same number of rounds, or arrive before the exit
  <- mbarrier, phase completion
hang, parity | A wait for a parity asks for the phase that is going on, or for the one before it.
  -> Start with parity 0 where the barrier is filled first, with 1 where it is empty first, and flip it once a round
  <- mbarrier.test_wait, phaseParity
hang, completed too often | A barrier that takes fewer arrivals or bytes than a round brings ends several phases each.
  -> Initialise the barrier with the number of arrivals of one round
  <- mbarrier.init
hang, barrier count | A barrier of a CTA ends when as many threads have come as its instruction says.
  -> Give every bar.sync and bar.arrive of one round the same count: that of the threads that come
  <- bar, barrier
hang, barrier | Some threads of the CTA never come to the barrier.
  -> Let all threads of the CTA come to it, or use a named barrier with a count
  <- bar, barrier
hang, cluster barrier | A barrier of a cluster ends when all threads of all its CTAs that have not exited have arrived.
  -> Let every CTA of the cluster arrive as often as its peers
  <- barrier.cluster
hang, divergent aligned instruction | All threads of a warp, or of a warpgroup, must execute an .aligned instruction.
  -> Move the instruction out of the branch, or make the condition the same for the whole warp
  <- .aligned
hang, lanes | An instruction with a mask waits for all lanes that the mask names.
  -> Name only the lanes that come, or let the others come
  <- shfl.sync, vote.sync, bar.warp.sync
hang, loop | The loop waits for something that nobody changes any more.
  -> Look at who should change what it reads
phase completed early | Bytes that land in the next phase make it end too early, and so on.
  -> Expect the sum of the bytes of all copies of the phase before they are issued
  <- mbarrier, tx-count; expect-tx operation
more bytes than expected | Copies bring more bytes than the phase expects.
  -> Expect the sum of the bytes of the copies that complete on the barrier in one phase
  <- mbarrier, tx-count; expect-tx operation
expected bytes are missing | A phase expects bytes that no copy brings.
  -> Expect only the bytes of copies that are issued, or issue the missing copy
  <- mbarrier, tx-count; expect-tx operation
too many arrivals | More arrivals than are pending are undefined.
  -> Initialise the barrier with the number of arrivals of one phase
  <- mbarrier.arrive
parity | A wait that passes for a phase that was over before waits for nothing.
  -> Start with parity 0 where the barrier is filled first, with 1 where it is empty first, and flip it once a round
  <- mbarrier.test_wait, phaseParity
mbarrier not initialised | Operations on an mbarrier need an mbarrier.init before them.
  -> Initialise the barrier, and let the others wait until it is
  <- mbarrier.init
mbarrier initialised twice | An mbarrier that is in use must not be initialised again.
  -> Execute mbarrier.inval first, or initialise it once
  <- mbarrier.init
mbarrier used after inval | An mbarrier that was invalidated is memory like any other.
  -> Initialise it again, or invalidate it after its last use
  <- mbarrier.inval
mbarrier invalidated in use | A copy that is under way still signals the barrier.
  -> Wait for the phase of the copy first
  <- mbarrier.inval
mbarrier count | The count of mbarrier.init is 1 to 1048575.
  -> Initialise the barrier with the number of arrivals of one phase
  <- mbarrier.init
barrier count | The instructions of one round of a barrier must give the same count, a multiple of 32.
  -> Give every bar.sync and bar.arrive of one round the same count: that of the threads that come
  <- bar, barrier
divergent aligned instruction | All threads of a warp, or of a warpgroup, must execute an .aligned instruction.
  -> Move the instruction out of the branch, or make the condition the same for the whole warp
  <- .aligned
exited before a barrier | A barrier without a count takes all threads of the CTA.
  -> Let all threads come to the barrier before they exit, or give it a count
  <- bar, barrier
exited lanes | Threads that a mask names must execute the instruction.
  -> Name only the lanes that come, or let all lanes come to the instruction before they exit
  <- shfl.sync, vote.sync, bar.warp.sync
cluster barrier | A thread arrives at the barrier of its cluster before it waits for it.
  -> Execute barrier.cluster.arrive before barrier.cluster.wait
  <- barrier.cluster
register count | setmaxnreg takes 24 to 256 registers by 8, as many as the code of the warps needs.
  -> Choose another count
  <- setmaxnreg
register direction | setmaxnreg.dec can't raise the count of registers, and setmaxnreg.inc can't lower it.
  -> Use the other action, or another count
  <- setmaxnreg
register pool | setmaxnreg.inc waits until the pool of the CTA has the registers, and only setmaxnreg.dec fills it.
  -> Ask for fewer registers, or release more: the sum over all warps must stay what it is at launch
  <- setmaxnreg
descriptor swizzle | A product reads a tile by the swizzle of its descriptor, whoever wrote it.
  -> Give the descriptor the swizzle that the tile was written with
  <- wgmma, matrix descriptor
descriptor address | A descriptor counts from its start address, by the pattern of its swizzle.
  -> Start at the first row of the tile; advance along K by bytes within the width of the swizzle
  <- wgmma, matrix descriptor
tile read in part | A copy brings bytes that no product reads.
  -> Look at the start address and the strides of the descriptors that read the tile
  <- wgmma, matrix descriptor
"""
)
"""Rule, or 'hang, ' and its cause -> reason."""
