"""Columns, with Spark's types."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn

from .spark.sql.quoting import quoted

_STRING_TYPES = ("string", "varchar", "char", "text")
_INTEGER_TYPES = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_FLOAT_TYPES = ("float", "real", "double")
_DECIMAL_TYPES = ("decimal", "numeric", "dec")


@dataclass
class DucklakeColumn(SparkColumn):
    @property
    def quoted(self) -> str:
        return quoted(self.column)

    @property
    def _type_name(self) -> str:
        return self.dtype.split("(")[0].strip().lower()

    def is_string(self) -> bool:
        return self._type_name in _STRING_TYPES

    def is_integer(self) -> bool:
        return self._type_name in _INTEGER_TYPES

    def is_float(self) -> bool:
        return self._type_name in _FLOAT_TYPES

    def is_numeric(self) -> bool:
        return self._type_name in _DECIMAL_TYPES

    def is_number(self) -> bool:
        return self.is_integer() or self.is_float() or self.is_numeric()

    def string_size(self) -> int:
        # Strings have no length here, so dbt never widens one.
        return 0

    @classmethod
    def string_type(cls, size: int = 0) -> str:
        return "string"

    def can_expand_to(self, other_column: Column) -> bool:
        # See string_size.
        return False

    def literal(self, value: object) -> str:
        return f"cast({value} as {self.dtype})"

    def __repr__(self) -> str:
        return f"<DucklakeColumn {self.name} ({self.data_type})>"
