"""Position keys: a row position as one number, the hash of the file key plus the position in the file."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import xxhash

from ...lake.errors import LakeError


def position_keys(record_counts: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """The salt to append to file keys before they are hashed, and the key of each file's first row.

    `record_counts` has the number of rows by file key. The key of a row is that of the file's first row plus the row's
    position. The salt is chosen so that the keys of different files do not overlap.
    """
    for attempt in range(20):
        salt = f"#{attempt}" if attempt else ""
        starts = {key: key_hash(key + salt) for key in record_counts}
        ranges = sorted((start, start + record_counts[key]) for key, start in starts.items())
        are_disjoint = all(end <= begin for (_, end), (begin, _) in pairwise(ranges))
        if are_disjoint and all(end < 2**63 for _, end in ranges):
            return salt, starts
    raise LakeError("the files of a table have names that can not be told apart; compact the table")


def key_hash(key: str) -> int:
    """The hash that Spark's `xxhash64` computes for a file key."""
    unsigned = xxhash.xxh64_intdigest(key.encode(), seed=42)
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned
