"""What a snapshot says of the dbt node that made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .lake.commit.staged import CommitInfo
from .lake.transaction import ChangeCounts
from .spark.inputs import Input
from .spark.session import LakeSession


@dataclass(frozen=True)
class NodeInfo:
    """What a snapshot says of a dbt node."""

    id: str
    author: str | None
    message: str
    extra_info: Mapping[str, Any]
    """In a run that is one snapshot, ids may be provisional, and inputs of the same run have no snapshot yet."""

    def commit_info(self) -> CommitInfo:
        """The commit info of the node's own snapshot."""
        return CommitInfo(self.author, self.message, json.dumps(self.extra_info))


class NodeInfoFactory(Protocol):
    """Makes the info of a node from its inputs and its changes."""

    def __call__(self, inputs: Sequence[Input], changes: ChangeCounts) -> NodeInfo: ...

    def annotated(self, info: NodeInfo, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo:
        """The info with what is known only when the node has run."""

    def with_progress(self, info: NodeInfo, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo | None:
        """The info for a snapshot of a node that changed nothing, if there is something to record."""

    @property
    def database(self) -> str:
        """The lake that the node writes."""
