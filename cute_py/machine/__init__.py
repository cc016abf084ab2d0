"""A model of a GPU multiprocessor in numpy: it runs the PTX of compilers and writes the same bytes as an H200.

    run = run_ptx(text, grid=4, args=[x, y, 1000])      x and y are numpy arrays, read and written in place
    run.ok, run.diagnostics, run.printed, run.counts

The principle: *each instruction runs as one numpy operation over all threads that have reached it*.

    text        ptx/source      a module: variables, functions, instructions with their lines
    code        code, sites     decoded once: an instruction is a Python function of a frame; a block runs as a whole
    threads     threads         registers are rows, one value per thread, of all resident CTAs; a frame is a set
                                of threads that run in step
    schedule    schedule        the frame with the lowest program counter runs; frames that meet become one; waiting
                                threads; completion of asynchronous work when no frame can run
    memory      memory          global ranges with bounds and names, shared memory by CTA, local memory by thread
    families    instructions/   integers, floats, conversions, predicates, accesses, lanes, control, mbarriers,
                                transfers, matrices, tensor memory: each is a table, name -> builder

Example: a kernel has 4 warps and 8 resident CTAs. The machine decodes `add.s32 %r3, %r1, 4;` into a function that reads
row 1 of the 32-bit registers, adds 4 and writes row 3: one addition of 1024 values. After a divergent `@%p1 bra L`, the
frame of 1024 threads is split into two frames, each with its own program counter. The frame with the lower program
counter runs first, so both frames reach `L` and become one frame again.

Integers, logic, conversions and rounded float arithmetic are exact. Copies move the same bytes as an H200, and matrix
products give the same bits; both were measured. Approximate functions are correctly rounded here; the results of a GPU
may differ from them within the bounds of the ISA. The machine does not model time: its clock counts executed
instructions.

Asynchronous work (TMA, bulk copies, cp.async, wgmma) runs as an agent, separate from the threads. The schedule decides
when an agent completes: immediately ('eager'), when a thread needs it ('lazy'), or at random. If the results of two
schedules differ, the kernel may read data before it has arrived.
"""

import importlib
import typing

from cute_py.deprecations import export_public, no_such_name

if typing.TYPE_CHECKING:
    from cute_py.machine.run import Count as Count
    from cute_py.machine.run import PtxError as PtxError
    from cute_py.machine.run import PtxRun as PtxRun
    from cute_py.machine.run import run_ptx as run_ptx
    from cute_py.machine.tensor_memory.umma_operands import UmmaOperands as UmmaOperands
    from cute_py.machine.warps import Warps as Warps

_LATER = {
    **dict.fromkeys(("Count", "PtxError", "PtxRun", "run_ptx"), "cute_py.machine.run"),
    "UmmaOperands": "cute_py.machine.tensor_memory.umma_operands",
    "Warps": "cute_py.machine.warps",
}
"""Public name -> its module, which is loaded on first use: the facts of tensor memory need no numpy."""


def __getattr__(name: str) -> typing.Any:
    """Import the module of a public name when the name is first used."""
    if name not in _LATER:
        raise no_such_name(__name__, name, __all__)
    return getattr(importlib.import_module(_LATER[name]), name)


__all__ = export_public(__name__, *_LATER)
