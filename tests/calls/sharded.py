"""Calls of distributions over devices and of what leads from one to another."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

PLAN = (
    "mesh.redistribute(mesh.distribute((8, 6), 2, [mesh.Shard(0)]), mesh.distribute((8, 6), 2, [mesh.Shard(1)]), 'f32')"
)
PARTS = "{0: numpy.ones((4, 6), numpy.float32), 1: numpy.zeros((4, 6), numpy.float32)}"


def placement(m: Maker) -> str:
    dim = m.choice((0, 1))
    return m.one_of(
        f"mesh.Shard({dim})",
        f"mesh.BlockCyclic({dim}, {m.choice((1, 2, 3))})",
        f"mesh.StridedShard({dim}, 2)",
        f"mesh.Zigzag({dim})",
        "mesh.Replicate()",
    )


def sharded(m: Maker) -> str:
    return f"mesh.distribute(({m.choice((4, 7, 12))}, 6), (2, 2), [{placement(m)}, {placement(m)}])"


INSTANCES.update(
    {
        "mesh.BlockCyclic": "mesh.BlockCyclic(0, 4)",
        "mesh.Partial": "mesh.Partial()",
        "mesh.Redistribution": PLAN,
        "mesh.Replicate": "mesh.Replicate()",
        "mesh.SectionedShard": "mesh.SectionedShard(0, (4, 2, 2))",
        "mesh.Shard": "mesh.Shard(0)",
        "mesh.ShardedLayout": sharded,
        "mesh.StridedShard": "mesh.StridedShard(0, 2)",
        "mesh.Transfer": f"next({PLAN}.transfers(0))",
        "mesh.Zigzag": "mesh.Zigzag(0)",
    }
)

add("mesh.Shard", lambda m: str(m.choice((0, 1))))
add("mesh.Zigzag", lambda m: str(m.choice((0, 1))))
add("mesh.BlockCyclic", "0", lambda m: str(m.choice((1, 4))))
add("mesh.StridedShard", "0", lambda m: str(m.choice((1, 2))))
add("mesh.SectionedShard", "0", "(8, 2, 2)")
add("mesh.Replicate")
add("mesh.Partial", "'sum'")
for name in ("BlockCyclic", "SectionedShard", "Shard", "StridedShard", "Zigzag"):
    method(f"mesh.{name}.pieces", INSTANCES[f"mesh.{name}"], "8", "2", "1")


@calls_of("mesh.distribute")
def _distribute(m: Maker) -> Any:
    named = {"order": "'column'", "uneven": "'jax'", "local": "'column'", "first": "(1, 0)"}
    return ("(8, 6)", "(2, 2)", f"[{placement(m)}, {placement(m)}]"), {k: v for k, v in named.items() if m.chance(0.3)}


add("mesh.ShardedLayout", "Layout(((4, 2), 6), ((E(1) * 6, E(0)), E(1)))", "2")
add("mesh.from_partition_spec", "(8, 6)", "(2, 2)", "(None, ('y', 'x'))", "'xy'")
add("mesh.from_dtensor", "dtensor()")
add("mesh.redistribute", sharded, sharded, "'bf16'", named={"devices_per_host": "2"})
add("mesh.Transfer", "0", "1", "6", "0", "3", "((3, 1, 2), (2, 3, 6))")
add("mesh.Redistribution", sharded, sharded, f"{PLAN}.dtype", "2")
for name in ("holders", "local_layout", "local_offset", "local_shape"):
    method(f"mesh.ShardedLayout.{name}", sharded, "(1, 2)" if name == "holders" else lambda m: str(m.integer(0, 3)))
method("mesh.Redistribution.transfers", PLAN, "0")
method("mesh.Redistribution.groups", PLAN, "0")
method("mesh.Redistribution.digest", PLAN)
method("mesh.ShardedLayout.digest", sharded)
method("mesh.Redistribution.run", PLAN, PARTS)
method("mesh.Redistribution.prepare", PLAN, PARTS)
CUT = "mesh.distribute((64, 128), 2, [mesh.Shard(0)])"
WHOLE = "copy(numpy.ones((64, 128), numpy.float32), formats.mxfp8())"
INSTANCES["mesh.ScaledSharding"] = lambda m: f"mesh.ScaledSharding({CUT}, formats.mxfp8())"
add("mesh.ScaledSharding", CUT, "formats.nvfp4()")
method("mesh.ScaledSharding.split", INSTANCES["mesh.ScaledSharding"], WHOLE)
PARTS = f"mesh.ScaledSharding({CUT}, formats.mxfp8()).split({WHOLE})"
method("mesh.ScaledSharding.join", INSTANCES["mesh.ScaledSharding"], PARTS)
method("mesh.ScaledSharding.redistribute", INSTANCES["mesh.ScaledSharding"], PARTS, INSTANCES["mesh.ScaledSharding"])
method("mesh.Transfer.pieces", INSTANCES["mesh.Transfer"], "lambda one: one.elements < 4")
add("draw.draw_shards", sharded)
