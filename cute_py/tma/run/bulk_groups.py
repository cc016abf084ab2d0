"""Bulk async-groups: how a thread knows that its stores have read shared memory, and that they are done.

Stores and reductions do not signal a barrier. A thread commits those it has issued as a group, and waits until at
most N of the newest groups are pending. `wait_group_read` waits for the reads of shared memory only, `wait_group` for
the writes too.

Source: PTX ISA 9.0, cp.async.bulk.commit_group, cp.async.bulk.wait_group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cute_py.argument_checks import expect_integer


@dataclass(slots=True)
class BulkOperation:
    """One store or reduction: what it is, the bytes of shared memory that it reads, and how far it has come."""

    name: str
    start: int
    stop: int
    read_done: bool = False
    write_done: bool = False


@dataclass(slots=True)
class BulkGroups:
    """The groups of one thread, oldest first.

    >>> groups = BulkGroups()
    >>> groups.issue(BulkOperation("store", 0, 1024)); groups.commit()
    >>> groups.wait_read(0); [op.read_done for op in groups.operations()], groups.pending()
    ([True], 1)
    """

    open: list[BulkOperation] = field(default_factory=list)
    committed: list[list[BulkOperation]] = field(default_factory=list)

    def issue(self, operation: BulkOperation) -> None:
        """Add an operation to the group that is not committed yet."""
        self.open.append(operation)

    def commit(self) -> None:
        """Close the group, which may be empty."""
        self.committed.append(self.open)
        self.open = []

    def pending(self) -> int:
        """Committed groups that are not done."""
        return sum(any(not op.write_done for op in group) for group in self.committed)

    def operations(self) -> list[BulkOperation]:
        """All operations, committed or not, oldest first."""
        return [op for group in self.committed for op in group] + self.open

    def _older(self, newest: int) -> list[BulkOperation]:
        kept = len(self.committed) - expect_integer(newest, "wait_group", 0, unit="groups")
        return [op for group in self.committed[: max(kept, 0)] for op in group]

    def wait_read(self, newest: int) -> None:
        """wait_group.read: all groups but the `newest` have read their sources."""
        for op in self._older(newest):
            op.read_done = True

    def wait(self, newest: int) -> None:
        """wait_group: all groups but the `newest` are done."""
        for op in self._older(newest):
            op.read_done = op.write_done = True

    def unread(self, start: int, stop: int) -> list[BulkOperation]:
        """Operations that may still read bytes of [start, stop)."""
        return [op for op in self.operations() if not op.read_done and op.start < stop and start < op.stop]
