"""Thrift's compact protocol, as far as the metadata of Parquet files needs it: any struct, without its definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_HAS_LONG_COUNT = 15


@dataclass
class Field:
    id: int
    type: int
    value: Any


@dataclass
class ThriftList:
    element_type: int
    values: list[Any]


@dataclass
class Struct:
    fields: list[Field]

    def get(self, field_id: int) -> Any:
        """The value of a field; None if the struct has no such field."""
        return next((field.value for field in self.fields if field.id == field_id), None)

    def set(self, field_id: int, value: Any) -> None:
        """Replaces the value of a field, if the struct has it."""
        for field in self.fields:
            if field.id == field_id:
                field.value = value

    def remove(self, *field_ids: int) -> None:
        self.fields = [field for field in self.fields if field.id not in field_ids]


def read_struct(content: bytes, at: int = 0) -> tuple[Struct, int]:
    """The struct at a position, and where it ends."""
    reader = _Reader(content, at)
    return reader.struct(), reader.at


def write_struct(struct: Struct) -> bytes:
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


class _Reader:
    def __init__(self, content: bytes, at: int) -> None:
        self.content = content
        self.at = at

    def struct(self) -> Struct:
        fields: list[Field] = []
        field_id = 0
        while (head := self._byte()) != _STOP:
            delta, type_ = head >> 4, head & 15
            field_id = field_id + delta if delta else self._integer()
            # The type of a boolean field is its value.
            value = type_ == _TRUE if type_ in (_TRUE, _FALSE) else self._value(type_)
            fields.append(Field(field_id, type_, value))
        return Struct(fields)

    def _value(self, type_: int) -> Any:
        if type_ in _INTEGERS:
            return self._integer()
        if type_ == _BINARY:
            return self._bytes(self._number())
        if type_ == _STRUCT:
            return self.struct()
        if type_ in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 != _HAS_LONG_COUNT else self._number()
            return ThriftList(head & 15, [self._value(head & 15) for _ in range(count)])
        if type_ in (_TRUE, _FALSE, _BYTE):  # an element of a list is a byte
            return self._byte()
        if type_ == _DOUBLE:
            return self._bytes(8)
        raise ValueError(f"type {type_} of Thrift's compact protocol, which Parquet's metadata does not have")

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        self.at += count
        return self.content[self.at - count : self.at]

    def _number(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        number = self._number()
        return number >> 1 ^ -(number & 1)


def _write_struct(out: bytearray, struct: Struct) -> None:
    last_id = 0
    for field in struct.fields:
        type_ = field.type if field.type not in (_TRUE, _FALSE) else _TRUE if field.value else _FALSE
        if 0 < field.id - last_id < 16:
            out.append(field.id - last_id << 4 | type_)
        else:
            out.append(type_)
            _write_integer(out, field.id)
        if type_ not in (_TRUE, _FALSE):
            _write_value(out, type_, field.value)
        last_id = field.id
    out.append(_STOP)


def _write_value(out: bytearray, type_: int, value: Any) -> None:
    if type_ in _INTEGERS:
        _write_integer(out, value)
    elif type_ == _BINARY:
        _write_number(out, len(value))
        out += value
    elif type_ == _STRUCT:
        _write_struct(out, value)
    elif type_ in (_LIST, _SET):
        count = len(value.values)
        out.append(min(count, _HAS_LONG_COUNT) << 4 | value.element_type)
        if count >= _HAS_LONG_COUNT:
            _write_number(out, count)
        for element in value.values:
            _write_value(out, value.element_type, element)
    elif type_ == _DOUBLE:
        out += value
    else:
        out.append(value)


def _write_number(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_number(out, value << 1 if value >= 0 else (-value << 1) - 1)
