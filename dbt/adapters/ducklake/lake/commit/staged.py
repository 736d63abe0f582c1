"""What a transaction has staged, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..deletes import Mask, NewDeleteFile
from ..files import NewDataFile
from ..options import Key
from ..predicates import Read
from ..snapshot import LakeState


@dataclass(frozen=True)
class CommitInfo:
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None


@dataclass(frozen=True)
class TableData:
    """What is staged of one table's rows."""

    added: tuple[NewDataFile, ...] = ()
    ended: frozenset[int] = frozenset()
    truncated: bool = False
    """Every file and inlined row that the table had in the base ends."""
    masks: Mapping[int, Mask] = field(default_factory=dict)
    """What is deleted of data files of the base, by their ids."""
    inlined: frozenset[int] = frozenset()
    """Row ids of inlined rows that end."""
    settled: Mapping[int, NewDeleteFile] = field(default_factory=dict)
    """Of data files that end: what the catalog itself kept of their deleted rows, as delete files."""
    updated: int = 0
    deleted: int = 0
    """How many rows of the base have a new version, and how many have none any more; not those truncated."""

    @property
    def deletes(self) -> bool:
        """Whether it takes something away from data files other than by positions in the catalog."""
        return self.truncated or bool(self.ended) or any(mask.file for mask in self.masks.values())

    @property
    def deletes_inlined(self) -> bool:
        return bool(self.inlined) or any(mask.positions for mask in self.masks.values())

    @property
    def touched(self) -> frozenset[int]:
        """The data files of which rows are taken away one by one."""
        return self.ended | self.masks.keys()


@dataclass(frozen=True)
class Staged:
    """All that a transaction has staged, as one value."""

    state: LakeState
    data: Mapping[int, TableData] = field(default_factory=dict)
    options: Mapping[Key, str | None] = field(default_factory=dict)
    rewritten: Mapping[int, Read | None] = field(default_factory=dict)
    """Tables whose rows were read to decide what to write, with what those rows have in common if it is known."""

    def makes_snapshot(self, base: LakeState) -> bool:
        """Whether more changed than options, which have no history."""
        return self.state != base or any(d != TableData() for d in self.data.values())
