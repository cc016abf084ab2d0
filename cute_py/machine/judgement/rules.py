"""Rules of the judges of memory: the rule, its reason, the change, and the section of the PTX ISA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cute_py.diagnostics import Reason, reason_table
from cute_py.machine.judgement.barrier_rules import BARRIER_RULES
from cute_py.machine.tensor_memory.rules import TENSOR_RULES

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
load under way at exit | A copy writes shared memory, which the SM releases when the CTA exits.
  -> Wait for its mbarrier before the exit
  <- async operations; distributed shared memory
exit before a peer is done | A CTA exits while another CTA of its cluster may still access its shared memory.
  -> Execute barrier.cluster.arrive and barrier.cluster.wait before the exit
  <- distributed shared memory
"""
)
"""Rule -> reason."""

REASONS: Final[Mapping[str, Reason]] = {**RULES, **BARRIER_RULES, **TENSOR_RULES}
"""Rule of any judge, or 'hang, ' and its cause -> the reason for the rule, and the change."""

_WAIT_STORE: Final = "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
_WAIT_PRODUCT: Final = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"

CURES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "race in shared memory": (
        ("before", "bar.sync 0;"), ("behind other", "bar.sync 0;"),
        ("before", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
    ),
    "race between lanes": (("before", "bar.warp.sync -1;"), ("behind other", "bar.warp.sync -1;")),
    "read before it arrives": (("before", "bar.sync 0;"), ("before", "cp.async.wait_all; bar.sync 0;")),
    "overwritten while in use": (("behind other", _WAIT_STORE), ("before", _WAIT_PRODUCT), ("before", "bar.sync 0;")),
    "missing proxy fence": (
        ("behind other", "fence.proxy.async;"), ("before", "fence.proxy.async;"),
        ("before", "cp.async.wait_all; fence.proxy.async; bar.sync 0;"),
    ),
    "tensor map not ordered": (
        ("behind other", "fence.proxy.tensormap::generic.release.gpu;"),
        ("before", "fence.proxy.tensormap::generic.acquire.gpu [{map}], 128;"),
    ),
    "initialisation not fenced": (("behind other", "fence.mbarrier_init.release.cluster;"),),
    "initialisation not known": (("before", "bar.sync 0;"), ("behind other", "bar.sync 0;")),
    "invalidated while in use": (("before", "bar.sync 0;"),),
    "registers not fenced": (("before", "wgmma.fence.sync.aligned;"),),
    "registers in use": (("before", _WAIT_PRODUCT),),
    "store under way at exit": (("behind", _WAIT_STORE),),
    "exit before a peer is done": (("behind", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),),
}  # fmt: skip
"""Rule -> (place, text to insert): before or after the instruction of the finding, or after the other instruction.
{map} is the address of the tensor map that the instruction reads."""
