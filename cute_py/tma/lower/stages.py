"""One stage of a lowering: what it is called, its text, the order of its coordinates, where the byte count is.

The stages are those of the TMA load walkthrough. Their texts are traces: stage 6 is the first that an assembler
takes. Coordinates are outermost first up to stage 3 and are reversed exactly once, from 3 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass

OUTER_FIRST = "outer-axis-first"
INNER_FIRST = "inner-axis-first"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of one lowering.

    number: "1" .. "7", with "3a" .. "3c" for the parts of the third. text: its trace. coordinates: their order and
    the names in it. tx_form, tx_carrier: how and where the transaction-byte count is held. checked: the diagnostics
    that its verifier gave (empty if the stage holds).
    """

    number: str
    name: str
    text: str
    coordinates: str = ""
    order: str = ""
    tx_form: str = ""
    tx_carrier: str = ""
    notes: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"Stage {self.number}: {self.name}"]
        if self.order:
            lines.append(f"  coordinates : {self.coordinates}, {self.order}")
        if self.tx_form:
            lines.append(f"  bytes       : {self.tx_form} ({self.tx_carrier})")
        lines += [f"  note        : {note}" for note in self.notes]
        lines += [f"  verifier    : {diagnostic}" for diagnostic in self.checked]
        return "\n".join([*lines, "", self.text])


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One row of the transaction-byte flow table: stage, form, carrier, source."""

    stage: str
    form: str
    carrier: str
    source: str


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One row of the coordinate-order table."""

    stage: str
    order: str
    why: str


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """One row of the address-space trail."""

    operand: str
    trail: str
