"""Calls of DuckDB's macros in a query's text: the types of their arguments, and what takes the place of each.

The types are those that Spark's analysis finds. A call is replaced by an expression that Spark refuses for the types of
its arguments, and the error names them. That needs no JVM, and knows what each name of the query means.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql.types import DataType, NullType, StructType

from ...lake.errors import LakeError
from ..sql.macros import MacroCall, MacroExpression
from ..sql.names import CallRef
from ..sql.quoting import quoted
from ..sql.rewriting import Edit

_CALL = "_lake_call_"
_TYPE = re.compile(r'"(STRUCT<_lake_call_(\d+): .*>)"', re.DOTALL)

_LOGGER = "SQLQueryContextLogger"
"""Where PySpark logs each error that it raises."""

Replacement = Callable[[Sequence[str]], str]
"""Returns what takes the place of a call, from the texts of its arguments."""


@dataclass(frozen=True)
class _Probe:
    """What an error says of a call: its number in the query, and the types of its arguments."""

    number: int
    types: tuple[DataType, ...]


class MacroCalls:
    """The calls of DuckDB's macros in a query whose other names are replaced by edits."""

    def __init__(self, sql: str, edits: Sequence[Edit], calls: Mapping[CallRef, MacroCall]) -> None:
        self._sql = sql
        self._edits = edits
        self._calls = {
            ref: call
            for ref, call in calls.items()
            if not any(start <= ref.start and ref.call_end <= end for start, end, _ in edits)
        }
        self._refs = list(self._calls)
        self._replacements: dict[CallRef, Replacement] = {}

    def expand(
        self,
        replacement: Callable[[MacroCall, MacroExpression], Replacement],
        analyze: Callable[[Sequence[Edit]], None],
    ) -> list[Edit]:
        """Returns the edits of the query with its calls expanded.

        `replacement` says what takes the place of a call. `analyze` has Spark analyze the query with some edits.
        """
        for ref, call in self._calls.items():
            if not call.needs_types:
                self._replace(ref, call.expression([NullType()] * len(ref.arguments)), replacement)
        while len(self._replacements) < len(self._calls):
            found = self._probe(analyze)
            ref = self._refs[found.number]
            self._replace(ref, self._calls[ref].expression(found.types), replacement)
        return self._edits_between(0, len(self._sql))

    def _replace(
        self, ref: CallRef, found: MacroExpression, replacement: Callable[[MacroCall, MacroExpression], Replacement]
    ) -> None:
        self._replacements[ref] = replacement(self._calls[ref], found)

    def _probe(self, analyze: Callable[[Sequence[Edit]], None]) -> _Probe:
        PySparkLogger.getLogger(_LOGGER).addFilter(_is_about_no_probe)
        try:
            analyze(self._edits_between(0, len(self._sql)))
        except AnalysisException as error:
            found = _types_in(error)
            if found is None:
                raise
            return found
        waiting = next(self._calls[ref].name for ref in self._refs if ref not in self._replacements)
        raise LakeError(f"the types of the arguments of {waiting} are not known where it is called")

    def _text_of(self, ref: CallRef) -> str:
        """Returns what takes the place of a call: before the types of its arguments are known, what asks for them."""
        arguments = [self._text_between(a.start, a.end) for a in ref.arguments]
        replacement = self._replacements.get(ref)
        if replacement is not None:
            written = ", ".join(self._sql[a.start : a.end] for a in ref.arguments)
            alias = f" AS {quoted(f'{self._calls[ref].macro.name}({written})')}" if ref.is_column else ""
            return replacement(arguments) + alias
        values = "".join(f", 'a{number}', {text}" for number, text in enumerate(arguments))
        return f"map_from_entries(named_struct('{_CALL}{self._refs.index(ref)}', 0{values}))"

    def _text_between(self, start: int, end: int) -> str:
        pieces, done = [], start
        for first, last, text in self._edits_between(start, end):
            pieces += [self._sql[done:first], text]
            done = last
        return "".join([*pieces, self._sql[done:end]])

    def _edits_between(self, start: int, end: int) -> list[Edit]:
        """Returns the edits of a part of the query, with one for each call that is in no other call."""
        refs = [ref for ref in self._refs if start <= ref.start and ref.call_end <= end]
        outer = [ref for ref in refs if not any(_is_inside(ref, other) for other in refs)]
        edits = [
            edit
            for edit in self._edits
            if start <= edit[0] and edit[1] <= end
            if not any(ref.start <= edit[0] and edit[1] <= ref.call_end for ref in outer)
        ]
        return sorted([*edits, *((ref.start, ref.call_end, self._text_of(ref)) for ref in outer)])


def _is_about_no_probe(record: logging.LogRecord) -> bool:
    return _CALL not in record.getMessage()


def _is_inside(ref: CallRef, other: CallRef) -> bool:
    return ref is not other and other.start <= ref.start and ref.call_end <= other.call_end


def _types_in(error: AnalysisException) -> _Probe | None:
    """Returns what an error says of a call; None if it is about something else."""
    match = _TYPE.fullmatch((error.getMessageParameters() or {}).get("inputType", ""))
    if match is None:
        return None
    struct = DataType.fromDDL(match[1])
    assert isinstance(struct, StructType)
    return _Probe(int(match[2]), tuple(field.dataType for field in struct.fields[1:]))
