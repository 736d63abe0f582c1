"""Blocks: sets of positions in files, 64 to a number.

64 consecutive rows of a file are a block. Its mask is a 64-bit integer with a set bit for each position in the set.
"""

from __future__ import annotations

from array import array

import pyarrow as pa
import pyarrow.compute as pc

_BITS = pa.Array.from_buffers(
    pa.int64(), 64, [None, pa.py_buffer(array("q", [*(1 << bit for bit in range(63)), -(2**63)]))]
)
"""The bits of a mask. Arrow's shift cannot set the sign bit. Made of a buffer, since `pa.array` imports pandas."""


def block_masks(positions: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The blocks of sorted positions, and their masks: the mask of a block is the sum of its bits."""
    if not len(positions):
        return positions, positions
    block = pc.shift_right(positions, 6)
    is_last = pa.concat_arrays([pc.not_equal(block[1:], block[:-1]), pa.array([True])])
    sums = pc.cumulative_sum(_BITS.take(pc.bit_wise_and(positions, 63))).filter(is_last)
    previous = pa.concat_arrays([pa.array([0], pa.int64()), sums[:-1]])
    return block.filter(is_last), pc.subtract(sums, previous)


def positions_in_blocks(blocks: pa.Array, masks: pa.Array) -> pa.Array:
    """The positions in blocks with these masks, in the order of the blocks."""
    bits = pa.Array.from_buffers(pa.bool_(), 64 * len(masks), [None, masks.buffers()[1]], offset=64 * masks.offset)
    places = pc.indices_nonzero(bits).cast(pa.int64())
    first_positions = pc.shift_left(blocks.take(pc.shift_right(places, 6)), 6)
    return pc.add(first_positions, pc.bit_wise_and(places, 63))
