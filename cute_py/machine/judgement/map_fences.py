"""Check that each change of a tensor map is released, and that it is acquired before a copy reads the map.

The rules are the same as in `cute_py.tma.emulator.tensormap_proxy`, applied between CTAs: a fence of any thread counts
for its whole CTA. This judge sees the changes of tensormap.replace and tensormap.cp_fenceproxy in global memory, but
not ordinary stores to a map. Other judges check the synchronisation of the two CTAs.
Source: PTX ISA 9.0, membar/fence, fence.proxy.tensormap; tensormap.cp_fenceproxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_py.machine.faults import finding, place_text
from cute_py.machine.judgement.observer import Observer
from cute_py.machine.rules.memory import RULES
from cute_py.ptx.parse import OperandKind
from cute_py.tma.emulator.tensormap_proxy import MAP_BYTES, SCOPES, Agent, TensormapProxy

if TYPE_CHECKING:
    from cute_py.diagnostics import Diagnostic
    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site
    from cute_py.machine.threads import Array, Frame, Host

RULE = "tensor map not ordered"


def map_fences(code: Code) -> Observer:
    """Return the judge of tensor maps, or an idle observer if the kernel changes no map."""
    return MapFences(code) if any(one.opcode.startswith("tensormap.") for one in code.instructions) else Observer()


class MapFences(Observer):
    """Judges the fences of tensor maps, and records the changes of each map, and the fences of each CTA."""

    active = True

    def __init__(self, code: Code) -> None:
        self.code = code
        self.maps = TensormapProxy()
        self._places: dict[tuple[int, int], tuple[int, Site]] = {}
        """(array, place) of a map -> number of the map, which serves as its address, and the last change."""
        self._unreleased: set[tuple[Agent, str]] = set()
        """CTA that has changed a map -> scopes where it has not released the change."""
        self._found: dict[tuple[int, int], Diagnostic] = {}

    def began(self, m: Host) -> None:
        """Start a wave; the records of maps in global memory are kept from earlier waves."""
        self.m = m

    def _agent(self, cta: int) -> Agent:
        cluster, rank = divmod(cta, self.m.cluster_size)
        return Agent(rank, getattr(self.m, "wave", 0) * self.m.ctas + cluster)

    def map_changed(self, f: Frame, site: Site, cta: int, array: Array, start: int, released: str) -> None:
        """Record that a CTA changes a map."""
        if array is self.m.shared:
            return  # a map in shared memory; tensormap.cp_fenceproxy copies it to global memory
        number, _ = self._places.get((id(array), start), ((len(self._places) + 1) * MAP_BYTES, site))
        self._places[id(array), start] = number, site
        agent = self._agent(cta)
        self.maps.write(number, bytes(MAP_BYTES), agent=agent)
        self._unreleased.update((agent, scope) for scope in SCOPES)
        if released:
            self._release(agent, released)

    def _release(self, agent: Agent, scope: str) -> None:
        if (agent, scope) in self._unreleased:
            self._unreleased.discard((agent, scope))
            self.maps.release(scope, agent=agent)

    def fenced(self, f: Frame, site: Site) -> None:
        """Record that the CTAs of a frame release their changes."""
        if self._unreleased and {"tensormap::generic", "release"} <= set(site.modifiers):
            scope = next(one for one in SCOPES if one in site.modifiers)
            for cta, _ in f.parts:
                self._release(self._agent(cta), scope)

    def map_acquired(self, f: Frame, site: Site, cta: int, array: Array, start: int, scope: str) -> None:
        """Record that a CTA acquires a map."""
        held = self._places.get((id(array), start))
        if held is not None:
            self.maps.acquire(held[0], scope, agent=self._agent(cta))

    def map_read(self, f: Frame, site: Site, array: Array, start: int) -> None:
        """Check that the last change of a map is ordered before a copy that reads the map."""
        held = self._places.get((id(array), start))
        if held is None:
            return
        number, changed = held
        _, ordering = self.maps.read(number, agent=self._agent(int(f.ctas[0])))
        pair = site.number, changed.number
        if not ordering.ordered and pair not in self._found:
            text = (
                f"a copy of {f.text()} reads a tensor map that {place_text(changed.one, self.code.files)} changed; the "
                f"change is {ordering}"
            )
            tensor = next(one for one in site.operands if one.kind is OperandKind.TENSOR)
            address = f"{tensor.base}+{tensor.added}" if tensor.added else tensor.base
            facts = {
                "threads": f.text(),
                "map": address,
                "other": changed.one.text,
                "other_line": changed.one.line,
            }
            self._found[pair] = finding(
                RULE, text, site.one, files=self.code.files, source=RULES[RULE].source, facts=facts
            )

    def findings(self) -> list[Diagnostic]:
        """Return the findings."""
        return list(self._found.values())
