"""Deletion masks: bitmaps of deleted rows, and the numbers that identify files in a scan."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.paths import new_data_file_name
from dbt.adapters.ducklake.spark.read.deletion_masks import _FileNumbers
from dbt.adapters.ducklake.spark.read.position_blocks import block_masks
from dbt.adapters.ducklake.spark.read.position_keys import key_hash


@given(st.sets(st.integers(0, 1000) | st.sampled_from([63, 64, 127, 2**40, 2**40 + 63])))
def test_masks_have_one_bit_for_each_deleted_row(deleted: set[int]) -> None:
    blocks, masks = block_masks(pa.array(sorted(deleted), pa.int64()))
    found = {
        block * 64 + bit
        for block, mask in zip(blocks.to_pylist(), masks.to_pylist(), strict=True)
        for bit in range(64)
        if mask >> bit & 1
    }
    assert found == deleted
    assert len(set(blocks.to_pylist())) == len(blocks)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=128))
def test_files_get_different_numbers(larger: list[int]) -> None:
    numbers = _FileNumbers.distinguishing(dict(enumerate(larger)))
    if numbers is None:  # no 16 consecutive bits differ for all files
        return
    assert len(set(numbers.by_file_id.values())) == len(larger)
    for file, number in enumerate(larger):
        assert numbers.by_file_id[file] == number >> numbers.shift & (1 << numbers.bits) - 1


def test_a_few_files_need_a_few_bits() -> None:
    numbers = _FileNumbers.distinguishing({1: 0b1000_0000, 2: 0b1001_0000, 3: 0b1010_0000})
    assert numbers is not None
    assert (numbers.shift, numbers.bits) == (4, 2)
    assert _FileNumbers.distinguishing({1: 500, 2: 500}) is None
    assert _FileNumbers.distinguishing({1: 500}) == _FileNumbers(0, 0, {1: 0})


def test_the_names_of_128_files_tell_them_apart() -> None:
    for _ in range(20):
        assert _FileNumbers.distinguishing({i: key_hash(new_data_file_name()) for i in range(128)}) is not None
