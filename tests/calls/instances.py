"""Text of an object of each public class whose members are read; for the others a call of the class itself serves."""

from __future__ import annotations

from collections.abc import Callable

from tests.calls.text import Maker

Instance = Callable[[Maker], str]

INSTANCES: dict[str, Instance | str] = {
    "Layout": Maker.layout,
    "ComposedLayout": Maker.composed,
    "Swizzle": Maker.swizzle,
    "LinearLayout": "linear(Layout((Int(2), Int(4)), (Int(4), Int(1))))",
    "BankConflicts": "bank_conflicts(Layout(32, 32), 'float32')",
    "Coalescing": "coalescing(Layout(32), 'float32')",
    "Footprint": "footprint(Layout((4, 8), (0, 2)))",
    "Step": "steps(coalesce, Layout((Int(2), Int(6))))[0]",
}
