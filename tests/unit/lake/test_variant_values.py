"""The binary form of variants."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from dbt.adapters.ducklake.lake.variant_values import encode_variant


@pytest.mark.parametrize(
    ("value", "value_hex"),
    [
        (True, "04"),
        (False, "08"),
        (-1, "18" + "ff" * 8),
        (0.5, "1c" + "000000000000e03f"),
        (Decimal("-1.5"), "20" + "01" + "f1ffffff"),
        (Decimal("12345678901.5"), "24" + "01" + (123456789015).to_bytes(8, "little").hex()),
        (2**64, "28" + "00" + (2**64).to_bytes(16, "little").hex()),
        (datetime.date(1970, 1, 2), "2c" + "01000000"),
        (datetime.datetime(1970, 1, 1, 0, 0, 1), "34" + "40420f0000000000"),
        (datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), "30" + "00" * 8),
        (b"\x00\xff", "3c" + "02000000" + "00ff"),
        ("é", "40" + "02000000" + "c3a9"),
        (datetime.time(12, 30), "40" + "08000000" + b"12:30:00".hex()),
        (UUID(int=1), "50" + "00" * 15 + "01"),
        ([None, True], "1f" + "02000000" + "00000000" + "01000000" + "02000000" + "00" + "04"),
    ],
)
def test_a_value_has_the_bytes_of_the_specification(value: Any, value_hex: str) -> None:
    assert encode_variant(value) == {"value": bytes.fromhex(value_hex), "metadata": bytes.fromhex("d10000000000000000")}


def test_the_fields_of_an_object_are_in_the_order_of_their_names() -> None:
    encoded = encode_variant({"b": True, "a": {"c": None}})
    assert encoded is not None
    assert encoded["metadata"] == bytes.fromhex("d1" + "03000000" + "".join(f"{i:02}000000" for i in range(4))) + b"abc"
    inner = "7e" + "01000000" + "02000000" + "00000000" + "01000000" + "00"
    assert encoded["value"].hex() == (
        "7e" + "02000000" + "00000000" + "01000000" + "00000000" + "12000000" + "13000000" + inner + "04"
    )


def test_a_missing_value_is_no_variant() -> None:
    assert encode_variant(None) is None


@pytest.mark.parametrize("value", [10**38, Decimal("NaN"), datetime.timedelta(1)])
def test_what_variants_do_not_have_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError, match="variant has no|38 digits"):
        encode_variant(value)
