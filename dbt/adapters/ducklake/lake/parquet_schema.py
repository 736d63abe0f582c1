"""The schema of a Parquet file as fields, and the types of the lake that its leaves have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class ParquetField:
    """A field of the Parquet schema."""

    name: str
    kind: str
    """`leaf`, `struct`, `list` or `map`."""
    field_id: int | None
    children: tuple[ParquetField, ...]
    leaves: tuple[int, ...]
    """The indexes of the Parquet columns below it."""
    has_usual_levels: bool = True
    """Whether a list has the levels that every engine takes for a list: those of today, or those of Avro."""


def schema_fields(metadata: pq.FileMetaData) -> tuple[ParquetField, ...]:
    """The top-level fields of a file."""
    # Only Arrow's schema shows field ids. Its leaves are the Parquet columns in order.
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    fields: list[ParquetField] = []
    for field in metadata.schema.to_arrow_schema():
        first_leaf = fields[-1].leaves[-1] + 1 if fields else 0
        fields.append(_field(field, field.name, paths, first_leaf))
    return tuple(fields)


def _field(field: pa.Field, path: str, paths: Sequence[str], first_leaf: int) -> ParquetField:
    """The field of a path. `paths` has those of all leaves, of which the field's begin at `first_leaf`."""
    field_id = (field.metadata or {}).get(b"PARQUET:field_id")
    kind, arrow_children = _kind_and_children(field.type)
    inner, has_usual_levels = path, True
    if kind in ("list", "map"):
        rest = paths[first_leaf][len(path) + 1 :]
        inner, has_usual_levels = _path_of_children(path, rest, arrow_children[0].name)
    children: list[ParquetField] = []
    next_leaf = first_leaf
    for child in arrow_children:
        # Where the only level of a list is that of its elements, Arrow names the element after it.
        children.append(_field(child, f"{inner}.{child.name}", paths, next_leaf))
        next_leaf = children[-1].leaves[-1] + 1
    return ParquetField(
        field.name,
        kind,
        None if field_id is None else int(field_id),
        tuple(children),
        tuple(range(first_leaf, max(next_leaf, first_leaf + 1))),
        has_usual_levels,
    )


def _path_of_children(path: str, rest: str, child: str) -> tuple[str, bool]:
    """The path in which the children of a list or map are, and whether its levels are usual ones.

    `rest` is the path of the first leaf below it.
    """
    if rest == child or rest.startswith(f"{child}."):  # the repeated level is the element itself
        return path, child == "array"
    repeated = rest.partition(".")[0]
    inner = rest[len(repeated) + 1 :]
    is_usual = repeated != "array" and (inner == child or inner.startswith(f"{child}."))
    return f"{path}.{repeated}", is_usual


def _kind_and_children(type_: pa.DataType) -> tuple[str, list[pa.Field]]:
    if isinstance(type_, pa.BaseExtensionType):
        return _kind_and_children(type_.storage_type)
    if pa.types.is_struct(type_):
        return "struct", [type_.field(i) for i in range(type_.num_fields)]
    if pa.types.is_map(type_):
        return "map", [type_.key_field, type_.item_field]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return "list", [type_.value_field]
    return "leaf", []


def logical_type(leaf: Any) -> Mapping[str, Any]:
    """The logical type of a Parquet column; its `Type` is `None` if it has none."""
    parsed: Mapping[str, Any] = json.loads(leaf.logical_type.to_json())
    return parsed


def is_in_utc(timestamp: Mapping[str, Any]) -> bool:
    """Whether a timestamp is a moment in UTC, rather than a local time.

    Arrow says so of old files too, of a time before Parquet had logical types. The reference and Spark do not.
    """
    return timestamp["isAdjustedToUTC"] and not timestamp.get("is_from_converted_type", False)


def stored_type(leaf: Any) -> str | None:
    """The type of the lake that a Parquet column has, as the reference takes it; None if both engines know none."""
    logical = logical_type(leaf)
    kind = logical["Type"]
    if kind == "None":
        return _PHYSICAL_TYPES.get(leaf.physical_type)
    if kind == "Int":
        return f"{'int' if logical['isSigned'] else 'uint'}{logical['bitWidth']}"
    if kind == "Decimal":
        return f"decimal({logical['precision']},{logical['scale']})"
    if kind == "Time":  # Spark reads no others
        return "time" if logical["timeUnit"] == "microseconds" else None
    if kind == "Timestamp":
        if is_in_utc(logical):
            return "timestamptz"
        return {"milliseconds": "timestamp_ms", "microseconds": "timestamp", "nanoseconds": "timestamp_ns"}[
            logical["timeUnit"]
        ]
    return _LOGICAL_TYPES.get(kind)


def stored_type_text(leaf: Any) -> str:
    """The type of a Parquet column in an error."""
    known, logical = stored_type(leaf), logical_type(leaf)
    if known is not None and logical["Type"] != "Null":
        return known
    details = [str(logical[key]) for key in ("Type", "timeUnit") if key in logical]
    return f"{leaf.physical_type} ({', '.join(details)})"


_PHYSICAL_TYPES = {
    "BOOLEAN": "boolean",
    "INT32": "int32",
    "INT64": "int64",
    "INT96": "timestamp",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BYTE_ARRAY": "blob",
    "FIXED_LEN_BYTE_ARRAY": "blob",
}
_LOGICAL_TYPES = {
    "String": "varchar",
    "Enum": "varchar",
    "JSON": "json",
    "BSON": "blob",
    "UUID": "uuid",
    "Date": "date",
    "Interval": "interval",
    "Null": "int32",
    "Geometry": "geometry",
}
