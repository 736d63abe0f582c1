"""Row positions as one number: the hash of the file name plus the position in the file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import xxhash

from ...lake.errors import LakeError


def place_keys(counts: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """What makes one number of a file's name and a position in it: a salt for the name, and each name's hash.

    `counts` has the rows of each file. The position is added to the hash; no two files' numbers meet.
    """
    for attempt in range(20):
        salt = f"#{attempt}" if attempt else ""
        starts = {name: name_hash(name + salt) for name in counts}
        spans = sorted((start, start + counts[name]) for name, start in starts.items())
        apart = all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        if apart and all(end < 2**63 for _, end in spans):
            return salt, starts
    raise LakeError("the files of a table have names that can not be told apart; compact the table")


def name_hash(name: str) -> int:
    """What Spark's `xxhash64` makes of a name."""
    number = xxhash.xxh64_intdigest(name.encode(), seed=42)
    return number - 2**64 if number >= 2**63 else number
