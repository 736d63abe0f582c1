"""Random statements by both engines in turns, and a plain list of rows that says what must come of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from .engines import Both

pytestmark = pytest.mark.usefixtures("interpreting_spark")

Row = dict[int, int | None]
STEPS = 6
LONG_STEPS = 30

# Rows and deletes in the catalog are flushed before a rewrite. The reference reads their statistics by today's names of
# columns, and flushes deletes of a rewritten file beside those that it has: it then reads the file twice.
MAINTENANCE = (
    ("call ducklake_merge_adjacent_files('lake')",),
    ("call ducklake_flush_inlined_data('lake')", "call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)"),
    ("call ducklake_flush_inlined_data('lake')",),
)

MAINTENANCE_BY_SPARK = (
    ("call ducklake_merge_adjacent_files()",),
    ("call ducklake_rewrite_data_files(delete_threshold => 0.0)",),
    ("call ducklake_rewrite_data_files(delete_threshold => 0.5)", "call ducklake_merge_adjacent_files('t')"),
    ("call ducklake_flush_inlined_data()",),
    ("call ducklake_flush_inlined_data()", "call ducklake_merge_adjacent_files()"),
    ("call ducklake_migrate_partitioning()",),
    (
        "call ducklake_cleanup_old_files(cleanup_all => true)",
        "call ducklake_delete_orphaned_files(cleanup_all => true)",
    ),
)


@dataclass
class Model:
    """A table of numbers: its columns by their ids, and its rows by column id."""

    names: dict[int, str] = field(default_factory=lambda: {1: "id", 2: "value", 3: "grp"})
    defaults: dict[int, int | None] = field(default_factory=lambda: {1: None, 2: None, 3: None})
    rows: list[Row] = field(default_factory=list)

    def new(self, **values: int | None) -> Row:
        """A row with the column of `id`, `value` and `grp` given, and defaults for the others."""
        given = dict(zip((1, 2, 3), (values["id"], values["value"], values["grp"]), strict=True))
        return {**self.defaults, **given}

    def content(self) -> Content:
        return Content(tuple(self.names.items()), Counter(tuple(row[i] for i in self.names) for row in self.rows))


@dataclass(frozen=True)
class Content:
    """What a table holds at one snapshot."""

    columns: tuple[tuple[int, str], ...]
    rows: Counter[tuple[int | None, ...]]

    def only(self, ids: Sequence[int]) -> Counter[tuple[int | None, ...]]:
        """The rows without the columns that are not among these."""
        places = [[i for i, _ in self.columns].index(column) for column in ids]
        found: Counter[tuple[int | None, ...]] = Counter()
        for row, count in self.rows.items():
            found[tuple(row[p] for p in places)] += count
        return found


def literal(value: int | None) -> str:
    return "cast(null as int)" if value is None else str(value)


class Writer:
    """Thinks of statements, in words that both engines take, and does to the model what they say."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model()

    # -- what a statement is made of

    def _number(self) -> int:
        return self.random.randrange(60)

    def _maybe(self) -> int | None:
        return None if self.random.random() < 0.2 else self.random.randrange(8)

    def _condition(self) -> tuple[str, Callable[[Row], bool]]:
        names = self.model.names
        choice = self.random.randrange(6)
        low = self._number()
        if choice == 0:
            high = low + self.random.choice((0, 2, 15, 40))
            return f"{names[1]} between {low} and {high}", lambda r: low <= (r[1] or 0) <= high
        if choice == 1:
            wanted = sorted({self._number() for _ in range(self.random.choice((1, 3, 12)))})
            return f"{names[1]} in ({', '.join(map(str, wanted))})", lambda r: r[1] in wanted
        column = self.random.choice((2, 3))
        if choice == 2:
            return f"{names[column]} is null", lambda r: r[column] is None
        if choice == 3:
            value = self.random.randrange(8)
            return f"{names[column]} = {value}", lambda r: r[column] == value
        if choice == 4:
            value = self.random.randrange(8)
            return (
                f"{names[column]} > {value} or {names[1]} < {low // 4}",
                lambda r: (r[column] is not None and r[column] > value) or (r[1] or 0) < low // 4,
            )
        part = self.random.randrange(5)
        return f"{names[1]} % 5 = {part}", lambda r: (r[1] or 0) % 5 == part

    def _assignment(self) -> tuple[str, Callable[[Row], Row]]:
        names = self.model.names
        choice = self.random.randrange(5)
        step = self.random.randrange(1, 5)
        if choice == 0:
            return f"{names[2]} = {names[2]} + {step}", lambda r: {2: None if r[2] is None else r[2] + step}
        if choice == 1:
            value = self._maybe()
            return f"{names[3]} = {literal(value)}", lambda r: {3: value}
        if choice == 2:
            return f"{names[2]} = {names[3]}, {names[3]} = {names[2]}", lambda r: {2: r[3], 3: r[2]}
        if choice == 3:
            return f"{names[1]} = {names[1]} + {step}", lambda r: {1: (r[1] or 0) + step}
        column = self.random.choice([i for i in names if i > 1])
        return f"{names[column]} = {names[1]} + {step}", lambda r: {column: (r[1] or 0) + step}

    def _source(self) -> tuple[str, list[tuple[int, int | None]]]:
        """The text of a source whose keys are distinct, and its rows."""
        count = self.random.choice((1, 3, 8, 25))
        keys = self.random.sample(range(70), count)
        rows = [(key, self._maybe()) for key in keys]
        selects = [f"select {key} as k, {literal(value)} as v" for key, value in rows]
        return f"({' union all '.join(selects)}) as s", rows

    # -- statements on rows

    def row_statement(self) -> str:
        kinds = (
            self.insert_few,
            self.insert_many,
            self.delete,
            self.delete,
            self.update,
            self.update,
            self.upsert,
            self.upsert,
            self.merge_delete,
            self.merge_missed,
        )
        return self.random.choice(kinds)()

    def _insert(self, count: int) -> str:
        names = self.model.names
        rows = [(self._number(), self._maybe(), self._maybe()) for _ in range(count)]
        self.model.rows += [self.model.new(id=a, value=b, grp=c) for a, b, c in rows]
        values = ", ".join(f"({a}, {literal(b)}, {literal(c)})" for a, b, c in rows)
        return f"insert into t ({names[1]}, {names[2]}, {names[3]}) values {values}"

    def insert_few(self) -> str:
        return self._insert(self.random.randrange(1, 4))

    def insert_many(self) -> str:
        return self._insert(self.random.randrange(15, 40))

    def delete(self) -> str:
        if self.random.random() < 0.04:
            self.model.rows = []
            return "delete from t"
        text, holds = self._condition()
        self.model.rows = [r for r in self.model.rows if not holds(r)]
        return f"delete from t where {text}"

    def update(self) -> str:
        text, new = self._assignment()
        if self.random.random() < 0.06:
            self.model.rows = [r | new(r) for r in self.model.rows]
            return f"update t set {text}"
        where, holds = self._condition()
        self.model.rows = [r | new(r) if holds(r) else r for r in self.model.rows]
        return f"update t set {text} where {where}"

    def upsert(self) -> str:
        names = self.model.names
        source, rows = self._source()
        given = dict(rows)
        there = {r[1] for r in self.model.rows}
        self.model.rows = [r | {2: given[r[1]]} if r[1] in given else r for r in self.model.rows]
        self.model.rows += [self.model.new(id=k, value=v, grp=None) for k, v in rows if k not in there]
        return (
            f"merge into t using {source} on t.{names[1]} = s.k when matched then update set {names[2]} = s.v"
            f" when not matched then insert ({names[1]}, {names[2]}) values (s.k, s.v)"
        )

    def merge_delete(self) -> str:
        source, rows = self._source()
        keys = {k for k, _ in rows}
        self.model.rows = [r for r in self.model.rows if r[1] not in keys]
        return f"merge into t using {source} on t.{self.model.names[1]} = s.k when matched then delete"

    def merge_missed(self) -> str:
        names = self.model.names
        source, rows = self._source()
        keys = {k for k, _ in rows}
        self.model.rows = [r if r[1] in keys or r[3] is not None else r | {3: 9, 2: r[1]} for r in self.model.rows]
        return (
            f"merge into t using {source} on t.{names[1]} = s.k when not matched by source and t.{names[3]} is null"
            f" then update set {names[3]} = 9, {names[2]} = t.{names[1]}"
        )

    # -- statements on the table

    def table_statement(self) -> str:
        names = self.model.names
        choice = self.random.randrange(4)
        if choice == 0 and len(names) < 7:
            column = max(names) + 1
            value = self._maybe()
            names[column], self.model.defaults[column] = f"c{column}", value
            for row in self.model.rows:
                row[column] = value
            return f"alter table t add column c{column} int" + ("" if value is None else f" default {value}")
        if choice == 1:
            column = self.random.choice(list(names))
            old, names[column] = names[column], f"n{self.random.randrange(10**6)}"
            return f"alter table t rename column {old} to {names[column]}"
        if choice == 2:
            return "alter table t reset partitioned by"
        # No buckets: the reference prunes by them files of before the table had any, and misses their rows.
        key = self.random.choice((names[3], f"{names[2]}, {names[3]}"))
        return f"alter table t set partitioned by ({key})"


class Run:
    """One sequence of statements on a lake, with a look at the rows after each."""

    def __init__(self, lake: Both, seed: int, what: str) -> None:
        self.lake = lake
        self.writer = Writer(seed)
        self.random = random.Random(seed + 10**6)
        self.seed = seed
        self.what = what
        self.done: list[str] = []
        self.versions: dict[int, Content] = {}
        self.maintained = False
        self.expired = False
        self.vectors = seed % 4 == 3
        """Whether Spark writes deletion vectors. DuckDB 1.5 does not, since its vectors lose the history of deletes."""

    def story(self) -> str:
        return "\n".join([f"seed {self.seed} ({self.what})", *self.done])

    def execute(self, steps: int, *, looks: int) -> None:
        limit = self.random.choice((10, 10, 0))
        if self.random.random() < 0.3:
            row_positions.MAX_DRIVER_ROWS = row_positions.MAX_DRIVER_POSITIONS = 0
        limits = ((2**20, 128), (8, 128), (0, 128), (0, 0))
        deletion_masks.MAX_BLOCKS, deletion_masks.MAX_FILES = self.random.choice(limits)
        self.on("duckdb", f"call lake.set_option('data_inlining_row_limit', {limit})")
        self.on(self.random.choice(("spark", "duckdb")), "create table t (id int, value int, grp int)")
        self.look()
        for step in range(steps):
            engine = ("spark", "duckdb")[(step + self.seed) % 2]
            if step < 2:
                self.on(engine, self.writer.insert_many())
            else:
                self.step(engine)
            self.look()
        self.look_back()
        for _ in range(looks):
            if self.random.random() < 0.5 and not self.expired:
                self.look_at_changes()
        if self.random.randrange(3) < looks:
            self.go_back()

    def step(self, engine: str) -> None:
        chance = self.random.random()
        if chance < 0.12:
            self.on(engine, self.writer.table_statement())
        elif chance < 0.30:
            self.maintain(self.random.choice(("spark", "duckdb")))
        elif chance < 0.45 and engine == "spark":
            statements = [self.writer.row_statement() for _ in range(self.random.randrange(2, 5))]
            self.on("spark", "begin", *statements, "commit")
        else:
            self.on(engine, self.writer.row_statement())

    def maintain(self, engine: str) -> None:
        self.maintained = True
        if engine == "duckdb":
            self.on("duckdb", *self.random.choice(MAINTENANCE))
        elif self.random.random() < 0.8 or len(self.versions) < 4:
            self.on("spark", *self.random.choice(MAINTENANCE_BY_SPARK))
        else:
            expired = self.random.sample(sorted(self.versions)[:-1], 2)
            self.on("spark", f"call ducklake_expire_snapshots(versions => {expired})", *MAINTENANCE_BY_SPARK[-1])
            self.expired = True
            for version in expired:
                del self.versions[version]

    def on(self, engine: str, *statements: str) -> None:
        self.done += [f"{engine}: {statement}" for statement in statements]
        try:
            if self.vectors:
                self.lake.spark(f"call ducklake_set_option('write_deletion_vectors', {engine == 'spark'})")
            (self.lake.spark if engine == "spark" else self.lake.duckdb)(*statements)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.story()}") from error

    # -- looking

    def look(self) -> None:
        """Compares both engines' rows with the model's, and the change feed with what the statement did."""
        content = self.writer.model.content()
        with self.lake.connection() as connection:
            names = [d[0] for d in connection.execute("from t limit 0").description or ()]
            theirs = Counter(connection.execute("from t").fetchall())
            newest = connection.execute("select max(snapshot_id) from ducklake_snapshots('lake')").fetchall()[0][0]
            feed: Any = None
            # Of a row that a transaction changed twice the reference's feed pairs each version with each, and of a file
            # that is rewritten it tells deletes again that the catalog kept.
            alone = not self.done[-1].endswith(": commit") and "rewrite_data_files" not in self.done[-1]
            if alone and newest not in self.versions and newest - 1 in self.versions:
                feed = connection.execute(
                    f"select * from ducklake_table_changes('lake', 'main', 't', {newest}, {newest})"
                ).to_arrow_table()
        assert names == [name for _, name in content.columns], self.story()
        self.same(theirs, content.rows, "DuckDB's rows")
        self.same(Counter(self.lake.spark_rows("select * from t")), content.rows, "Spark's rows")
        if feed is not None:
            self.look_at(feed, self.versions[newest - 1], content)
        for version in range(max(self.versions, default=newest - 1) + 1, newest + 1):
            self.versions[version] = content

    def look_at(self, feed: Any, before: Content, after: Content) -> None:
        """Whether the changes lead from the rows before to the rows after."""
        ids = [i for i, _ in after.columns if i in dict(before.columns)]
        names = [dict(after.columns)[i] for i in ids]
        found = before.only(ids)
        kinds = feed.column("change_type").to_pylist()
        rows = list(zip(*(feed.column(name).to_pylist() for name in names), strict=True))
        for kind, row in zip(kinds, rows, strict=True):
            found[row] += 1 if kind in ("insert", "update_postimage") else -1
        expected = after.only(ids)
        wrong = {r: (found[r], expected[r]) for r in found.keys() | expected.keys() if found[r] != expected[r]}
        assert wrong == {}, f"rows found and expected by the change feed: {wrong}\n{feed.to_pylist()}\n{self.story()}"

    def look_back(self) -> None:
        """Compares every version, as both engines read it, with the model's."""
        with self.lake.connection() as connection:
            for version, content in self.versions.items():
                theirs = Counter(connection.execute(f"from t at (version => {version})").fetchall())
                self.same(theirs, content.rows, f"DuckDB's rows at snapshot {version}")
            row_ids = connection.execute(f"select rowid, {self.writer.model.names[1]} from t").fetchall()
        each = (f"select {v} as v, array({', '.join(n for _, n in c.columns)}) as r" for v, c in self.versions.items())
        query = " union all ".join(f"{q} from t version as of {v}" for q, v in zip(each, self.versions, strict=True))
        ours: dict[int, list[Any]] = {version: [] for version in self.versions}
        for version, row in self.lake.spark_rows(query):
            ours[version].append(tuple(row))
        for version, content in self.versions.items():
            self.same(Counter(ours[version]), content.rows, f"Spark's rows at snapshot {version}")
        assert len({r for r, _ in row_ids}) == len(row_ids), f"row ids that are there twice\n{self.story()}"
        found = self.lake.spark_rows(f"select rowid, {self.writer.model.names[1]} from t")
        self.same(Counter(found), Counter(row_ids), "Spark's row ids")

    def look_at_changes(self) -> None:
        """Whether Spark's change feed leads from some version to a later one."""
        first, last = sorted(self.random.sample(list(self.versions), 2))
        feed = self.lake.lake.sql(f"select * from ducklake_table_changes('t', {first + 1}, {last})").toArrow()
        self.look_at(feed, self.versions[first], self.versions[last])

    def go_back(self) -> None:
        """Takes the table back to some version, for both engines to read."""
        version = self.random.choice(list(self.versions))
        content = self.versions[version]
        self.on("spark", f"call ducklake_rollback('t', version => {version})")
        with self.lake.connection() as connection:
            names = [d[0] for d in connection.execute("from t limit 0").description or ()]
            theirs = Counter(connection.execute("from t").fetchall())
        assert names == [name for _, name in content.columns], self.story()
        self.same(theirs, content.rows, f"DuckDB's rows, taken back to {version}")
        self.same(Counter(self.lake.spark_rows("select * from t")), content.rows, f"Spark's rows, back at {version}")

    def same(self, found: Counter[Any], expected: Counter[Any], what: str) -> None:
        if found != expected:
            missing, more = expected - found, found - expected
            raise AssertionError(f"{what}: missing {dict(missing)}, too many {dict(more)}\n{self.story()}")


def carry_out(open_lake: Callable[..., Both], kind: str, seed: int, steps: int, patch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (row_positions, "MAX_DRIVER_ROWS"),
        (row_positions, "MAX_DRIVER_POSITIONS"),
        (deletion_masks, "MAX_BLOCKS"),
        (deletion_masks, "MAX_FILES"),
    ):
        patch.setattr(module, name, getattr(module, name))
    Run(open_lake(kind, encrypted=seed % 5 == 4), seed, kind).execute(steps, looks=1 if steps == STEPS else 5)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        *(("sqlite", seed) for seed in range(40)),
        *(("postgres", seed) for seed in range(200, 215)),
        *(("duckdb", seed) for seed in range(300, 315)),
    ],
)
def test_random_statements_do_what_the_model_says(
    open_lake: Callable[..., Both], kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out(open_lake, kind, seed, STEPS, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_long_sequences_do_what_the_model_says(
    open_lake: Callable[..., Both], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out(open_lake, ("sqlite", "postgres", "duckdb")[seed % 3], seed, LONG_STEPS, monkeypatch)
