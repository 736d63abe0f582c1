"""The binary form of variants, as Parquet and Spark have it, of values in Python.

Inlined variants of a DuckDB catalog come as values in Python: with text instead, `'1'` and `1` would be the same.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .values import comparable_value

_NULL, _TRUE, _FALSE, _INT64, _DOUBLE = 0, 1, 2, 6, 7
_DECIMAL4, _DECIMAL8, _DECIMAL16 = 8, 9, 10
_DATE, _TIMESTAMPTZ, _TIMESTAMP, _BINARY, _STRING, _UUID = 11, 12, 13, 15, 16, 20
"""The types of primitive values in the specification of variants."""

_METADATA = 0b11_0_1_0001
"""The first byte of metadata: version 1, sorted names, offsets of four bytes."""
_OBJECT, _ARRAY = 0b1_11_11_10, 0b1_11_11
"""The first byte of an object and of an array: counts, field ids and offsets have four bytes."""


def encode_variant(value: Any) -> dict[str, bytes] | None:
    """The two parts of a variant. Raises ValueError if variants have no such value."""
    if value is None:
        return None
    names = sorted(set(_names(value)), key=str.encode)
    texts = [name.encode() for name in names]
    ids = {name: index for index, name in enumerate(names)}
    metadata = bytes([_METADATA]) + struct.pack("<I", len(names)) + _offsets(texts) + b"".join(texts)
    return {"value": _encode(value, ids), "metadata": metadata}


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield name
            yield from _names(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _names(item)


def _encode(value: Any, ids: Mapping[str, int]) -> bytes:
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda field: ids[field[0]])
        items = [_encode(item, ids) for _, item in fields]
        names = b"".join(struct.pack("<I", ids[name]) for name, _ in fields)
        return bytes([_OBJECT]) + struct.pack("<I", len(fields)) + names + _offsets(items) + b"".join(items)
    if isinstance(value, list | tuple):
        items = [_encode(item, ids) for item in value]
        return bytes([_ARRAY]) + struct.pack("<I", len(items)) + _offsets(items) + b"".join(items)
    type_, data = _primitive(value)
    return bytes([type_ << 2]) + data


def _primitive(value: Any) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if isinstance(value, bool):
        return (_TRUE if value else _FALSE), b""
    if isinstance(value, int):
        return (_INT64, struct.pack("<q", value)) if -(2**63) <= value < 2**63 else _decimal(decimal.Decimal(value))
    if isinstance(value, float):
        return _DOUBLE, struct.pack("<d", value)
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, datetime.datetime):
        micros = comparable_value(value, "timestamp") // 1000
        return (_TIMESTAMPTZ if value.tzinfo else _TIMESTAMP), struct.pack("<q", micros)
    if isinstance(value, datetime.date):
        return _DATE, struct.pack("<i", comparable_value(value, "date"))
    if isinstance(value, uuid.UUID):
        return _UUID, value.bytes
    if isinstance(value, bytes):
        return _BINARY, struct.pack("<I", len(value)) + value
    if isinstance(value, datetime.time):  # Spark's variants have no times
        value = value.isoformat()
    if not isinstance(value, str):
        raise ValueError(f"a variant has no {type(value).__name__}")
    text = value.encode()
    return _STRING, struct.pack("<I", len(text)) + text


def _decimal(value: decimal.Decimal) -> tuple[int, bytes]:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent < -38:
        raise ValueError(f"a variant has no {value}")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0) * (-1 if sign else 1)
    if abs(unscaled) >= 10**38:
        raise ValueError(f"{value} has more than the 38 digits of a decimal")
    sizes = ((_DECIMAL4, 4, 9), (_DECIMAL8, 8, 18), (_DECIMAL16, 16, 38))
    type_, size = next((type_, size) for type_, size, precision in sizes if abs(unscaled) < 10**precision)
    return type_, bytes([max(-exponent, 0)]) + unscaled.to_bytes(size, "little", signed=True)


def _offsets(items: Sequence[bytes]) -> bytes:
    """Where each item begins, and where the last one ends."""
    offsets = [0]
    for item in items:
        offsets.append(offsets[-1] + len(item))
    return struct.pack(f"<{len(offsets)}I", *offsets)
