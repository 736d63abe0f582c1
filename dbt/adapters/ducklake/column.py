"""Columns with the types that Spark gives them."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.column import SparkColumn

_STRINGS = ("string", "varchar", "char", "text")
_INTEGERS = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_FLOATS = ("float", "real", "double")


@dataclass
class DucklakeColumn(SparkColumn):
    @property
    def quoted(self) -> str:
        return "`" + self.column.replace("`", "``") + "`"

    @property
    def _kind(self) -> str:
        return self.dtype.split("(")[0].strip().lower()

    def is_string(self) -> bool:
        return self._kind in _STRINGS

    def is_integer(self) -> bool:
        return self._kind in _INTEGERS

    def is_float(self) -> bool:
        return self._kind in _FLOATS

    def is_numeric(self) -> bool:
        return self._kind in ("decimal", "numeric", "dec")

    def is_number(self) -> bool:
        return self.is_integer() or self.is_float() or self.is_numeric()

    def string_size(self) -> int:
        # Texts have no length here, so none has to be widened.
        return 0

    @classmethod
    def string_type(cls, size: int = 0) -> str:
        return "string"

    def can_expand_to(self, other_column: SparkColumn) -> bool:
        """Whether texts would have to be widened: never."""
        return False

    def literal(self, value: object) -> str:
        return f"cast({value} as {self.dtype})"

    def __repr__(self) -> str:
        return f"<DucklakeColumn {self.name} ({self.data_type})>"
