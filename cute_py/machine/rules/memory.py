"""Rules about memory, each with its reason, a suggested change, and the section of the PTX ISA."""

from __future__ import annotations

from typing import Final

from cute_py.diagnostics import reason_table

RULES: Final = reason_table(
    """
race in shared memory | Nothing orders two accesses, and one is a write, so the result depends on their timing.
  -> Synchronise between them: bar.sync, an mbarrier, or barrier.cluster
  <- memory consistency model, causality order
race in global memory | Nothing orders two accesses, and one is a write, so the result depends on their timing.
  -> Synchronise between them, or use an atomic operation
  <- memory consistency model, causality order
race between lanes | Lanes of a warp run independently: only synchronisation orders their accesses.
  -> Execute bar.warp.sync between the two: shfl.sync and vote.sync do not order memory
  <- memory consistency model, causality order; bar.warp.sync
lanes write one place | If lanes write different values to one address in one instruction, an arbitrary one remains.
  -> Let one lane write, or use an atomic operation
  <- memory consistency model, conflicts
scope too narrow | Two operations on one address synchronise only if the scope of each includes the other thread.
  -> Use a scope that includes both threads, such as .gpu
  <- memory consistency model, scope; morally strong operations
read before it arrives | A copy writes these bytes, and the reader has not waited for its completion.
  -> Wait for the mbarrier or the group of the copy, and synchronise with the thread that waits
  <- async operations, completion mechanisms
released before the read | A thread arrives at an mbarrier before it reads shared memory, and a copy that follows this
  arrival writes the same bytes.
  -> Arrive after the last read of these bytes
  <- mbarrier.arrive; async operations, completion mechanisms
arrival not ordered | An arrival counts in the current phase, so the phase before it must have completed in every run.
  -> Arrive once in each round, after a wait that follows the phase before
  <- mbarrier.arrive, phase completion
overwritten while in use | Asynchronous work may still read these bytes, and the writer has not waited for its
  completion.
  -> Wait for the group of that work (cp.async.bulk.wait_group.read, wgmma.wait_group) before you write the bytes
  <- async operations, completion mechanisms
missing proxy fence | The asynchronous proxy sees ordinary stores only after a fence.proxy.async.
  -> Execute fence.proxy.async after the stores, before the barrier that the issuing thread waits for
  <- async proxy; membar/fence, proxy fences
tensor map not ordered | Copies read tensor maps through a separate proxy, which sees a change only after two fences.
  -> Release after the change, then acquire the map in the CTA that copies; each scope must include both threads
  <- membar/fence, fence.proxy.tensormap; tensormap.cp_fenceproxy
initialisation not fenced | An mbarrier that another proxy or another CTA uses needs a fence after its initialisation.
  -> Execute fence.mbarrier_init.release.cluster, or fence.proxy.async, after mbarrier.init
  <- membar/fence, fence.mbarrier_init
initialisation not known | A thread uses an mbarrier, but nothing orders the initialisation before this use.
  -> Synchronise after mbarrier.init: bar.sync in a CTA, barrier.cluster in a cluster
  <- mbarrier.init; memory consistency model, causality order
invalidated while in use | A thread invalidates an mbarrier while another thread may still arrive or wait at it.
  -> Synchronise before mbarrier.inval: bar.sync in a CTA, barrier.cluster in a cluster
  <- mbarrier.inval; memory consistency model, causality order
barrier overlapped by data | A write changes bytes of an mbarrier; only mbarrier operations may change them.
  -> Move the data or the mbarrier, or execute mbarrier.inval first
  <- mbarrier, contents of the mbarrier object
never written | The bytes have no defined value: shared memory is not initialised.
  -> Write them first, or do not read them
  <- state spaces, shared state space
registers not fenced | wgmma reads its registers asynchronously, so a fence must follow the writes of these registers.
  -> Execute wgmma.fence.sync.aligned before the product
  <- wgmma.fence
registers in use | A thread must not access the registers of a product before it has waited for the group of the
  product.
  -> Execute wgmma.commit_group and wgmma.wait_group first
  <- wgmma.mma_async, wgmma.wait_group
store under way at exit | A bulk store reads shared memory, which the SM releases when the CTA exits.
  -> Execute cp.async.bulk.wait_group.read 0 before the exit
  <- cp.async.bulk.wait_group
store under way at exit, copy to a peer | A bulk copy to another CTA reads shared memory, which the SM releases when the
  CTA exits; the copy completes on an mbarrier of the other CTA.
  -> Execute barrier.cluster in both CTAs before the exit, after the other CTA has waited for this mbarrier
  <- async operations; distributed shared memory
load under way at exit | A copy writes shared memory, which the SM releases when the CTA exits.
  -> Wait for its mbarrier before the exit
  <- async operations; distributed shared memory
exit before a peer is done | A CTA exits while another CTA of its cluster may still access its shared memory.
  -> Execute barrier.cluster.arrive and barrier.cluster.wait before the exit
  <- distributed shared memory
"""
)
"""Rule -> reason."""
