"""Asks both engines the same questions about lakes, many in one Spark query, and tells their answers apart."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError

from .. import reference
from ..interop.engines import _IN_SPARKS_WORDS, METADATA, _quoted, _ticked, rows_of

EQUAL, DIFFERENT, REFUSED, NOT_COMPARABLE = "equal", "different", "refused", "not comparable"
DUCKDB_IS_WRONG = "DuckDB is wrong"
OUTCOMES = (EQUAL, DIFFERENT, DUCKDB_IS_WRONG, REFUSED, NOT_COMPARABLE)

MAX_ROWS_IN_PYTHON = 20_000
"""Longer answers are compared by DuckDB."""

QUESTIONS_A_QUERY = 20


@dataclass(frozen=True)
class LakeFile:
    """A lake whose catalog is a file, and the name that it is attached under in Spark. DuckDB calls it `lake`."""

    catalog: str
    name: str = "lake"
    metadata_schema: str | None = None
    data_path: str | None = None
    encrypted: bool = False

    def connect(self) -> duckdb.DuckDBPyConnection:
        options: dict[str, Any] = {"metadata_schema": self.metadata_schema} if self.metadata_schema else {}
        if self.encrypted:
            options["encrypted"] = 1
        connection = reference.connect(self.catalog, self.data_path, **options)
        # With several threads its change feed now and then tells all rows of a file, in a snapshot nobody asked for.
        connection.execute("SET threads = 1")
        return connection


@dataclass(frozen=True)
class Question:
    """What both engines are asked: the rows of a table at a snapshot, its changes from one to another, or a view."""

    kind: str
    lake: str
    schema: str
    name: str
    first: int = 0
    last: int = 0
    with_row_ids: bool = False

    def __str__(self) -> str:
        when = {"rows": f" at {self.last}", "changes": f" from {self.first} to {self.last}"}.get(self.kind, "")
        return f"{self.kind} of {self.schema}.{self.name}{when}"

    @property
    def spark(self) -> str:
        name = f"{_ticked(self.lake)}.{_ticked(self.schema)}.{_ticked(self.name)}"
        if self.kind == "changes":
            text = name.replace("\\", "\\\\").replace("'", "\\'")
            return f"select * from ducklake_table_changes('{text}', {self.first}, {self.last})"
        if self.kind == "view":
            return f"select * from {name}"
        columns = "rowid, snapshot_id, *" if self.with_row_ids else "*"
        return f"select {columns} from {name} version as of {self.last}"

    @property
    def duckdb(self) -> str:
        name = f"{_quoted(self.schema)}.{_quoted(self.name)}"
        if self.kind == "changes":
            texts = [part.replace("'", "''") for part in (self.schema, self.name)]
            return f"from ducklake_table_changes('lake', '{texts[0]}', '{texts[1]}', {self.first}, {self.last})"
        if self.kind == "view":
            return f"from {name}"
        columns = "select rowid, snapshot_id, * " if self.with_row_ids else ""
        return f"{columns}from {name} at (version => {self.last})"


@dataclass(frozen=True)
class Finding:
    """What came of one question. The detail says how answers differ, or why they cannot be compared."""

    question: Question
    kind: str
    outcome: str
    detail: str = ""
    spark: pa.Table | None = field(default=None, repr=False, compare=False)
    """Spark's answer, where it differs."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.question}: {self.outcome}: {self.detail}"


@dataclass
class Findings:
    """The findings of many questions."""

    items: list[Finding] = field(default_factory=list)

    def count(self) -> Counter[tuple[str, str]]:
        return Counter((finding.kind, finding.outcome) for finding in self.items)

    def of(self, *outcomes: str) -> list[Finding]:
        return [finding for finding in self.items if finding.outcome in outcomes]


_NULL_VARIANT = "null"
"""A variant's null as JSON. DuckDB has no difference between it and NULL, and writes the one for the other."""

# -- questions

_TABLES = """
select s.snapshot_id, n.schema_name, t.table_name,
  exists(
    from {m}.ducklake_column c where c.table_id = t.table_id and lower(c.column_name) in ('rowid', 'snapshot_id')
  )
from {m}.ducklake_snapshot s
join {m}.ducklake_table t on t.begin_snapshot <= s.snapshot_id and coalesce(t.end_snapshot > s.snapshot_id, true)
join {m}.ducklake_schema n on n.schema_id = t.schema_id
 and n.begin_snapshot <= s.snapshot_id and coalesce(n.end_snapshot > s.snapshot_id, true)
order by 1, 2, 3
"""

_LIVE = """
select n.schema_name, r.{kind}_name, max(r.begin_snapshot)
from {m}.ducklake_{kind} r join {m}.ducklake_schema n using (schema_id)
where r.end_snapshot is null and n.end_snapshot is null group by all order by all
"""

_FIRST = """
select min(t.begin_snapshot) from {m}.ducklake_table t
where t.table_id in (
  select table_id from {m}.ducklake_table join {m}.ducklake_schema n using (schema_id)
  where n.schema_name = ? and table_name = ? and ducklake_table.end_snapshot is null and n.end_snapshot is null)
"""


def metadata_of(lake: LakeFile) -> str:
    return METADATA + (f".{_quoted(lake.metadata_schema)}" if lake.metadata_schema else "")


def tables(connection: duckdb.DuckDBPyConnection, lake: LakeFile) -> list[tuple[str, str]]:
    """The tables of the newest snapshot."""
    query = _LIVE.format(m=metadata_of(lake), kind="table")
    return [(schema, name) for schema, name, _ in connection.execute(query).fetchall()]


def questions(
    connection: duckdb.DuckDBPyConnection, lake: LakeFile, *, since: int = 0, most_ranges: int = 3
) -> list[Question]:
    """Every table at every snapshot since one, some ranges of its change feed, and every view."""
    metadata = metadata_of(lake)
    asked = []
    for snapshot, schema, table, named in connection.execute(_TABLES.replace("{m}", metadata)).fetchall():
        if snapshot >= since:
            asked.append(Question("rows", lake.name, schema, table, 0, snapshot, not named))
    kept = [row[0] for row in connection.execute(f"select snapshot_id from {metadata}.ducklake_snapshot").fetchall()]
    for schema, table in tables(connection, lake):
        first = connection.execute(_FIRST.replace("{m}", metadata), [schema, table]).fetchall()[0][0]
        versions = sorted(snapshot for snapshot in kept if snapshot >= max(first, since))
        asked += [
            Question("changes", lake.name, schema, table, start, end) for start, end in _ranges(versions, most_ranges)
        ]
    for schema, view, _ in connection.execute(_LIVE.format(m=metadata, kind="view")).fetchall():
        asked.append(Question("view", lake.name, schema, view))
    return asked


def _ranges(versions: Sequence[int], most: int) -> list[tuple[int, int]]:
    """All versions, and some shorter ranges, always the same ones."""
    if not versions:
        return []
    chance = random.Random(len(versions))
    found = {(versions[0], versions[-1]): None}
    while len(found) < min(most, len(versions) * (len(versions) + 1) // 2):
        start, end = sorted((chance.choice(versions), chance.choice(versions)))
        found[start, chance.choice((start, end))] = None
    return sorted(found)


# -- answers

Answer = pa.Table | Exception


def duckdb_answers(connection: duckdb.DuckDBPyConnection, asked: Sequence[Question]) -> list[Answer]:
    found: list[Answer] = []
    for question in asked:
        try:
            found.append(_duckdb_answer(connection, question.duckdb))
        except (duckdb.Error, UnicodeDecodeError, RuntimeError) as error:
            found.append(error)
    return found


def _duckdb_answer(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """What DuckDB answers, in types that Spark has."""
    relation = connection.sql(query)
    columns = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        target = _comparable_type(kind)
        compared = f"cast({_quoted(name)} as {target})" if target else _quoted(name)
        if str(kind) == "VARIANT":
            compared = f"nullif({compared}::varchar, '{_NULL_VARIANT}')"
        columns.append(f"{compared} as {_quoted(name)}")
    # A change feed of half a million rows never ends with one thread, unless the rows are gathered first.
    gathered = f"with answer as materialized ({query}) select {', '.join(columns)} from answer"
    return connection.execute(gathered).to_arrow_table()


def _comparable_type(kind: Any) -> str | None:
    """The type in which a column compares with Spark's; None where it is its own."""
    if "VARIANT" in str(kind):
        return "json"
    if kind.id in ("list", "array"):
        inner = _comparable_type(kind.children[0][1])
        return inner and f"{inner}[]"
    if kind.id == "map":
        key, value = (_comparable_type(child) or str(child) for _, child in kind.children)
        changed = any(_comparable_type(child) for _, child in kind.children)
        return f"map({key}, {value})" if changed else None
    if kind.id == "struct":
        inner_types = [(name, child, _comparable_type(child)) for name, child in kind.children]
        if not any(inner for _, _, inner in inner_types):
            return None
        return "struct(" + ", ".join(f"{_quoted(n)} {inner or child}" for n, child, inner in inner_types) + ")"
    return _IN_SPARKS_WORDS.get(str(kind))


def spark_answers(lake: LakeSession, asked: Sequence[Question]) -> list[Answer]:
    """What Spark answers. Questions are asked together; what fails together is asked again one by one."""
    found: list[Answer] = []
    for start in range(0, len(asked), QUESTIONS_A_QUERY):
        found += _spark_answers_of_some(lake, asked[start : start + QUESTIONS_A_QUERY])
    return found


def _spark_answers_of_some(lake: LakeSession, asked: Sequence[Question]) -> list[Answer]:
    plans: list[DataFrame | Exception] = []
    for question in asked:
        try:
            plans.append(_collectable(lake.sql(question.spark)))
        except Exception as error:
            plans.append(error)
    numbered = {i: plan for i, plan in enumerate(plans) if isinstance(plan, DataFrame)}
    try:
        answers: Mapping[int, Answer] = _collect_together(numbered)
    except Exception:
        answers = {i: _collect(plan) for i, plan in numbered.items()}
    return [plan if isinstance(plan, Exception) else answers[i] for i, plan in enumerate(plans)]


def _collectable(found: DataFrame) -> DataFrame:
    """The frame with variants as JSON, which Arrow has a type for."""
    columns = []
    for stored in found.schema.fields:
        column = F.col(_ticked(stored.name))
        if "variant" in stored.dataType.simpleString():
            column = F.to_json(column, {"ignoreNullFields": "false"})
            column = F.when(column != _NULL_VARIANT, column).alias(stored.name)
        columns.append(column)
    return found.select(*columns)


def _collect(plan: DataFrame) -> Answer:
    try:
        return plan.toArrow()
    except Exception as error:
        return error


def _collect_together(plans: Mapping[int, DataFrame]) -> Mapping[int, Answer]:
    """Collects frames in one query: each has its number, and frames of one schema have columns of their own."""
    if not plans:
        return {}
    schemas = {schema: i for i, schema in enumerate(dict.fromkeys(plan.schema.json() for plan in plans.values()))}
    names = {
        number: [f"c{schemas[plan.schema.json()]}_{i}" for i in range(len(plan.columns))]
        for number, plan in plans.items()
    }
    parts = [plan.toDF(*names[number]).withColumn("question", F.lit(number)) for number, plan in plans.items()]
    together = _union(parts).toArrow()
    found = {}
    for number, plan in plans.items():
        rows = together.filter(pc.equal(together.column("question"), number)).select(names[number])
        found[number] = rows.rename_columns(plan.columns)
    return found


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """The frames one below the other. In halves, since Spark goes through each union's whole plan."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return _union(frames[:middle]).unionByName(_union(frames[middle:]), allowMissingColumns=True)


# -- comparison


def compare(asked: Sequence[Question], spark: Sequence[Answer], other: Sequence[Answer]) -> Findings:
    findings = Findings()
    for question, ours, theirs in zip(asked, spark, other, strict=True):
        findings.items += _compare_one(question, ours, theirs)
    return findings


def _compare_one(question: Question, ours: Answer, theirs: Answer) -> Iterator[Finding]:
    if isinstance(theirs, Exception):
        yield Finding(question, question.kind, NOT_COMPARABLE, f"DuckDB: {_first_line(theirs)}")
    elif isinstance(ours, Exception):
        # An error that says what cannot be done is one thing, an exception from within another.
        refused = isinstance(ours, LakeError) or "is translated" in str(ours)
        yield Finding(question, question.kind, REFUSED if refused else DIFFERENT, f"Spark: {_first_line(ours)}")
    else:
        try:
            yield from _compare_tables(question, ours, theirs)
        except (ValueError, OverflowError, pa.ArrowException) as error:  # moments that Python does not have
            yield Finding(question, question.kind, NOT_COMPARABLE, f"in Python: {_first_line(error)}")


def _compare_tables(question: Question, ours: pa.Table, theirs: pa.Table) -> Iterator[Finding]:
    if [n.lower() for n in ours.column_names] != [n.lower() for n in theirs.column_names]:
        detail = f"columns: Spark {ours.column_names}, DuckDB {theirs.column_names}"
        yield Finding(question, question.kind, DIFFERENT, detail)
        return
    whole = difference(ours, theirs)
    if not question.with_row_ids:
        yield Finding(question, question.kind, DIFFERENT if whole else EQUAL, whole, ours if whole else None)
        return
    rows = whole and difference(ours.select(range(2, ours.num_columns)), theirs.select(range(2, theirs.num_columns)))
    yield Finding(question, "rows", DIFFERENT if rows else EQUAL, rows)
    if not rows:
        yield Finding(question, "row ids", DIFFERENT if whole else EQUAL, whole)


def difference(ours: pa.Table, theirs: pa.Table) -> str:
    """The rows that only one has, as multisets; empty if there are none."""
    if max(ours.num_rows, theirs.num_rows) > MAX_ROWS_IN_PYTHON:
        return _difference_of_many(ours, theirs)
    left, right = (Counter(map(repr, rows_of(table))) for table in (ours, theirs))
    if left == right:
        return ""
    more, missing = list((left - right).elements()), list((right - left).elements())
    return (
        f"{len(more)} only in Spark {'; '.join(more[:3])[:600]} | {len(missing)} only in DuckDB "
        + ("; ".join(missing[:3])[:600])
    )


def _difference_of_many(ours: pa.Table, theirs: pa.Table) -> str:
    names = [f"c{i}" for i in range(ours.num_columns)]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("ours", ours.rename_columns(names))
    connection.register("theirs", theirs.rename_columns(names))
    only = [
        connection.execute(f"from (from {a} except all from {b}) limit 3").fetchall()
        for a, b in (("ours", "theirs"), ("theirs", "ours"))
    ]
    return f"only in Spark {only[0]!r:.600} | only in DuckDB {only[1]!r:.600}" if any(only) else ""


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, Py4JJavaError):  # its first line names the call alone
        text = " ".join(line for line in text.splitlines() if "Caused by" in line or "Exception: " in line)
    return f"{type(error).__name__}: {(text.splitlines() or [''])[0][:300]}"
