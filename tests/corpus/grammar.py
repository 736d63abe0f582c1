"""Random lakes: a seed is a list of statements for DuckDB, in which every feature of the format has its chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

STEPS = 4
"""How many steps a lake has after its first table. A step is a statement, or a transaction of several."""

FOLDER = "{folder}"
"""In statements: the folder of the lake, for files that are added to it."""

_NAMES = ("a", "b", "c", "qty", "a b", "Größe", "sel'ect", 'quo"ted', "order", "名前", "x.y", "Mixed")
_TABLES = ("t", "orders", "my table", "tä'b", 'q"t', "ünï")
_SCHEMAS = ("main", "main", "main", "s2", "other schema")


@dataclass(frozen=True)
class Type:
    """A type, and how to make its values from the number `i`."""

    name: str
    values: tuple[str, ...]
    transforms: tuple[str, ...] = ()
    """The partition transforms that take it."""
    widened: tuple[str, ...] = ()
    default: str | None = None


_DAY = ("year", "month", "day")
_HOUR = (*_DAY, "hour")

TYPES: Mapping[str, Type] = {
    t.name: t
    for t in (
        Type("boolean", ("i % 2 = 0",), ("",), default="true"),
        Type("tinyint", ("(i % 100)::tinyint",), ("", "bucket"), ("smallint", "integer", "bigint"), "-3"),
        Type("smallint", ("(i % 1000)::smallint", "-7"), ("", "bucket"), ("integer", "bigint"), "300"),
        Type("integer", ("i::integer", "(i % 3)::integer", "-2147483648"), ("", "bucket"), ("bigint",), "42"),
        Type("bigint", ("i * 1000000007", "9223372036854775807"), ("", "bucket"), (), "7000000000"),
        Type("utinyint", ("(i % 200)::utinyint", "255"), (), ("usmallint", "uinteger", "ubigint"), "200"),
        Type("uinteger", ("i::uinteger", "4294967295"), (), ("ubigint",), "4000000000"),
        Type("ubigint", ("i::ubigint", "18446744073709551615")),
        Type("hugeint", ("i::hugeint",), (), (), "5"),
        Type("uhugeint", ("i::uhugeint",)),
        Type("float", ("i::float / 4", "'nan'::float"), (), ("double",), "0.5"),
        Type("double", ("i / 8.0", "'-inf'::double", "-0.0"), (), (), "2.25"),
        Type("decimal(7,2)", ("(i % 1000 + 0.25)::decimal(7,2)",), ("",), ("decimal(12,2)",), "1.50"),
        Type("decimal(30,4)", ("(i * 3.1415)::decimal(30,4)", "-99999999999999999999.1234")),
        Type("varchar", ("'v' || i", "''", "'ü '' \"' || i % 3", "'NULL'"), ("", "bucket"), (), "'it''s'"),
        Type("blob", ("encode('b' || i)", "'\\x00\\xFF'::blob")),
        Type("date", ("date '2024-02-27' + (i % 60)::integer", "date '1969-12-31'"), ("", *_DAY), (), "'2020-02-29'"),
        Type(
            "timestamp",
            ("timestamp '2024-12-31 22:10:00.123456' + to_minutes(i * 37)", "timestamp '1960-01-01 00:00:00'"),
            _HOUR,
            (),
            "'2021-01-01 01:02:03.5'",
        ),
        Type("timestamptz", ("timestamptz '2024-06-30 23:00:00+00' + to_minutes(i * 41)",), _HOUR),
        Type("timestamp_s", ("(timestamp '2024-01-01 00:00:00' + to_seconds(i))::timestamp_s",)),
        Type("timestamp_ms", ("(timestamp '2024-01-01 00:00:00.5' + to_seconds(i))::timestamp_ms",)),
        Type("timestamp_ns", ("(timestamp '2024-01-01 00:00:00.000001' + to_seconds(i))::timestamp_ns",)),
        Type("time", ("time '00:00:00' + to_seconds(i % 80000)",)),
        Type("uuid", ("('00000000-0000-4000-8000-' || lpad((i % 999)::varchar, 12, '0'))::uuid",)),
        Type("json", ("('{\"k\": ' || i || ', \"l\": [1, null]}')::json",)),
        Type("interval", ("to_days((i % 9)::integer) + to_minutes(i)",)),
        Type("integer[]", ("[i::integer, null, 3]", "[]")),
        Type("varchar[][]", ("[['a' || i], [], null]",)),
        Type("struct(x integer, y varchar)", ("{'x': i::integer, 'y': 'y' || i}", "{'x': null, 'y': null}")),
        # No dates and moments in nested values: DuckDB cannot read those back that it inlines in SQLite.
        Type("struct(n struct(p bigint, q varchar), l integer[])", ("{'n': {'p': i, 'q': 'q' || i}, 'l': [1]}",)),
        Type("map(varchar, integer)", ("map {'k' || i: i::integer}", "map {}")),
        Type("struct(a integer, b varchar)[]", ("[{'a': i::integer, 'b': 'b'}, null]", "[{'a': null, 'b': 'c' || i}]")),
        Type("variant", ("i::variant", "case when i % 2 = 0 then null else i::variant end")),
        Type("geometry", ("('POINT(' || i || ' 2)')::geometry",)),
    )
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@dataclass
class Table:
    """What the writer knows of a table. Its first column, `id`, keeps its name."""

    schema: str
    name: str
    columns: dict[str, str] = field(default_factory=dict)
    fields: dict[str, list[str]] = field(default_factory=dict)
    """Integer fields of struct columns."""

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"


class Writer:
    """Thinks of the statements of a lake. Some fail, since the reference refuses them: they belong to the lake."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._tables: list[Table] = []
        self._schemas = {"main"}
        self._views: list[str] = []
        self._numbers = iter(range(1, 10**6))
        self._rows = 0
        self.features: set[str] = set()
        self.statements: list[str] = []

    def write(self, steps: int = STEPS) -> list[str]:
        self._set_inlining()
        self._create_table()
        self._insert()
        for _ in range(steps):
            self._step()
        return self.statements

    def _say(self, feature: str, *statements: str) -> None:
        self.features.add(feature)
        self.statements += statements

    def _step(self) -> None:
        chance = self._random.random()
        if chance < 0.2:
            self._transaction()
        elif chance < 0.34:
            self._pick(self._MAINTENANCE)(self)
        elif chance < 0.41:
            self._pick(self._ALONE)(self)
        else:
            self._pick(self._CHANGES)(self)

    def _transaction(self) -> None:
        rolled_back = self._random.random() < 0.25
        known = [
            Table(t.schema, t.name, dict(t.columns), {k: list(v) for k, v in t.fields.items()}) for t in self._tables
        ]
        views, schemas = list(self._views), set(self._schemas)
        self.statements.append("begin")
        for _ in range(self._random.randrange(2, 5)):
            self._pick(self._CHANGES)(self)
        self._say("rollback" if rolled_back else "transaction", "rollback" if rolled_back else "commit")
        if rolled_back:
            self._tables, self._views, self._schemas = known, views, schemas

    def _pick(self, weighted: Sequence[tuple[int, Callable[[Writer], None]]]) -> Callable[[Writer], None]:
        return self._random.choices([c for _, c in weighted], [w for w, _ in weighted])[0]

    def _table(self) -> Table:
        if not self._tables:
            self._create_table()
        return self._random.choice(self._tables)

    # -- options

    def _set_inlining(self) -> None:
        limit = self._random.choice((0, 10, 10, 100))
        self._say(f"inlining {'on' if limit else 'off'}", f"call lake.set_option('data_inlining_row_limit', {limit})")

    def _set_option(self) -> None:
        table = self._table()
        name, value = self._random.choice(
            (
                ("parquet_compression", "'zstd'"),
                ("parquet_version", "2"),
                ("target_file_size", "'1MB'"),
                ("data_inlining_row_limit", self._random.choice(("0", "5"))),
                ("hive_file_pattern", "false"),
                ("parquet_row_group_size", "2048"),
            )
        )
        where = f", schema => {text(table.schema)}, table_name => {text(table.name)}"
        self._say("option", f"call lake.set_option('{name}', {value}{where if self._random.random() < 0.6 else ''})")

    def _set_deletion_vectors(self) -> None:
        value = self._random.choice(("true", "true", "false"))
        self._say("deletion vectors", f"call lake.set_option('write_deletion_vectors', {value})")

    # -- tables

    def _new_name(self, table: Table) -> str:
        name = self._random.choice(_NAMES)
        while name.lower() in {column.lower() for column in table.columns}:
            name = f"c{next(self._numbers)}"
        return name

    def _type(self) -> str:
        return self._random.choice(list(TYPES))

    def _value(self, kind: str) -> str:
        if kind not in TYPES:  # what a column was widened to
            return "null"
        value = self._random.choice(TYPES[kind].values)
        return (
            f"case when i % {self._random.choice((2, 5))} = 0 then null else {value} end"
            if self._chance(0.3)
            else value
        )

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _create_table(self, replaced: Table | None = None) -> None:
        schema = self._random.choice(_SCHEMAS)
        if schema not in self._schemas:
            self._schemas.add(schema)
            self._say("schema", f"create schema {quoted(schema)}")
        table = Table(schema, self._random.choice(_TABLES), {"id": "bigint"})
        if replaced is not None:
            table = Table(replaced.schema, replaced.name, {"id": "bigint"})
        elif any((t.schema, t.name) == (table.schema, table.name) for t in self._tables):
            table.name = f"t{next(self._numbers)}"
        for _ in range(self._random.randrange(1, 6)):
            kind = self._type()
            name = self._new_name(table)
            table.columns[name] = kind
            self.features.add(f"type {kind}")
            if kind.startswith("struct(x"):
                table.fields[name] = ["x"]
        if self._chance(0.3):
            selected = ", ".join(
                f"({self._value(k)})::{k} as {quoted(n)}" for n, k in table.columns.items() if n != "id"
            )
            rows = self._random.choice((3, 12, 40))
            self._say("table as", f"create table {table.sql} as select i as id, {selected} from range({rows}) r(i)")
            self._rows += rows
        else:
            columns = ", ".join(self._definition(n, k) for n, k in table.columns.items())
            self._say("table", f"create table {table.sql} ({columns})")
        self._tables.append(table)

    def _definition(self, name: str, kind: str) -> str:
        words = [quoted(name), kind]
        default = TYPES[kind].default
        if default is not None and self._chance(0.3):
            words.append(f"default {default}")
            self.features.add("default")
        if name == "id" and self._chance(0.2):
            words.append("not null")
            self.features.add("not null")
        return " ".join(words)

    def _drop_table(self) -> None:
        table = self._table()
        self._tables.remove(table)
        self._say("drop table", f"drop table {table.sql}")
        if self._chance(0.7):
            self._create_table(table)
            self._insert(self._tables[-1])
            self.features.add("dropped and created again")

    def _rename_table(self) -> None:
        table = self._table()
        old, table.name = table.sql, f"renamed {next(self._numbers)}"
        self._say("rename table", f"alter table {old} rename to {quoted(table.name)}")

    # -- rows

    def _select(self, table: Table, rows: int, first: int) -> str:
        values = ", ".join(f"({self._value(k)})::{k} as {quoted(n)}" for n, k in table.columns.items() if n != "id")
        return f"select i as id{', ' if values else ''}{values} from range({first}, {first + rows}) r(i)"

    def _insert(self, table: Table | None = None) -> None:
        table = table or self._table()
        rows = self._random.choice((1, 3, 7, 30, 60))
        first, self._rows = self._rows, self._rows + rows
        if self._chance(0.15):
            self._say(
                "insert of defaults", f"insert into {table.sql} (id) select i from range({first}, {first + rows}) r(i)"
            )
        else:
            self._say("insert", f"insert into {table.sql} by name {self._select(table, rows, first)}")

    def _condition(self) -> str:
        step = self._random.choice((2, 3, 5, 7))
        part = self._random.randrange(step)
        return self._random.choice(
            (
                f"id % {step} = {part}",
                f"id between {self._random.randrange(60)} and {self._random.randrange(60, 150)}",
                f"id in ({', '.join(str(self._random.randrange(max(self._rows, 1))) for _ in range(3))})",
            )
        )

    def _delete(self) -> None:
        where = "" if self._chance(0.05) else f" where {self._condition()}"
        self._say("delete", f"delete from {self._table().sql}{where}")

    def _truncate(self) -> None:
        self._say("truncate", f"truncate {self._table().sql}")

    def _update(self) -> None:
        table = self._table()
        column = self._random.choice(list(table.columns))
        value = (
            "id + 1000" if column == "id" else f"(select {self._value(table.columns[column])} from (select id as i))"
        )
        self._say("update", f"update {table.sql} set {quoted(column)} = {value} where {self._condition()}")

    def _merge(self) -> None:
        table = self._table()
        first = self._random.randrange(max(self._rows, 1))
        rows = self._random.choice((2, 9, 25))
        self._rows += rows
        others = [name for name in table.columns if name != "id"]
        column = self._random.choice(others) if others else "id"
        matched = self._random.choice(("update set " + quoted(column) + " = s." + quoted(column), "delete"))
        names = ", ".join(quoted(name) for name in table.columns)
        values = ", ".join(f"s.{quoted(name)}" for name in table.columns)
        self._say(
            "merge",
            f"merge into {table.sql} as t using ({self._select(table, rows, first)}) as s on t.id = s.id"
            f" when matched then {matched} when not matched then insert ({names}) values ({values})",
        )

    # -- schema evolution

    def _add_column(self) -> None:
        table = self._table()
        kind, name = self._type(), self._new_name(table)
        table.columns[name] = kind
        default = TYPES[kind].default
        given = f" default {default}" if default is not None and self._chance(0.6) else ""
        self.features.add(f"type {kind}")
        self._say(
            "add column" + (" with default" if given else ""),
            f"alter table {table.sql} add column {quoted(name)} {kind}{given}",
        )

    def _other_column(self, table: Table) -> str | None:
        names = [name for name in table.columns if name != "id"]
        return self._random.choice(names) if names else None

    def _drop_column(self) -> None:
        table = self._table()
        name = self._other_column(table)
        if name is not None and len(table.columns) > 2:
            kind = table.columns.pop(name)
            table.fields.pop(name, None)
            self._say("drop column", f"alter table {table.sql} drop column {quoted(name)}")
            if self._chance(0.3):
                table.columns[name] = kind
                self._say("column dropped and added again", f"alter table {table.sql} add column {quoted(name)} {kind}")

    def _rename_column(self) -> None:
        table = self._table()
        name = self._other_column(table)
        if name is not None:
            new = self._new_name(table)
            table.columns = {new if n == name else n: k for n, k in table.columns.items()}
            table.fields = {new if n == name else n: f for n, f in table.fields.items()}
            self._say("rename column", f"alter table {table.sql} rename column {quoted(name)} to {quoted(new)}")

    def _retype_column(self) -> None:
        table = self._table()
        wide = [(n, w) for n, k in table.columns.items() if k in TYPES for w in TYPES[k].widened]
        if wide:
            name, kind = self._random.choice(wide)
            table.columns[name] = kind
            self._say("retype", f"alter table {table.sql} alter column {quoted(name)} set data type {kind}")

    def _change_default(self) -> None:
        table = self._table()
        named = [(n, TYPES[k].default) for n, k in table.columns.items() if k in TYPES and TYPES[k].default]
        if named:
            name, default = self._random.choice(named)
            action = self._random.choice((f"set default {default}", "drop default"))
            self._say("change default", f"alter table {table.sql} alter column {quoted(name)} {action}")

    def _change_not_null(self) -> None:
        action = self._random.choice(("set not null", "drop not null"))
        self._say("change not null", f"alter table {self._table().sql} alter column id {action}")

    def _change_field(self) -> None:
        tables = [t for t in self._tables if t.fields]
        if not tables:
            self._add_struct()
            return
        table = self._random.choice(tables)
        column = self._random.choice(list(table.fields))
        fields = table.fields[column]
        choice = self._random.randrange(3)
        table.columns[column] = "changed struct"
        if choice == 0 or not fields:
            name = f"f{next(self._numbers)}"
            fields.append(name)
            given = self._random.choice((" default 42", " default 42", ""))
            action = f"add column {quoted(column)}.{name} integer{given}"
            self.features.add("field with default" if given else "field")
        elif choice == 1:
            name = self._random.choice(fields)
            new = f"g{next(self._numbers)}"
            fields[fields.index(name)] = new
            action = f"rename column {quoted(column)}.{name} to {new}"
            self.features.add("rename field")
        else:
            action = f"drop column {quoted(column)}.{fields.pop()}"
            self.features.add("drop field")
        self._say("change of fields", f"alter table {table.sql} {action}")

    def _add_struct(self) -> None:
        table = self._table()
        name = self._new_name(table)
        table.columns[name], table.fields[name] = "struct(x integer, y varchar)", ["x"]
        self._say("struct", f"alter table {table.sql} add column {quoted(name)} struct(x integer, y varchar)")
        self._insert(table)

    def _partition(self) -> None:
        table = self._table()
        if self._chance(0.15):
            self._say("reset partitioned by", f"alter table {table.sql} reset partitioned by")
            return
        keys = [(n, t) for n, k in table.columns.items() if k in TYPES for t in TYPES[k].transforms]
        chosen = self._random.sample(keys, min(len(keys), self._random.choice((1, 1, 2))))
        words = [
            f"bucket({self._random.choice((2, 4))}, {quoted(n)})"
            if t == "bucket"
            else f"{t}({quoted(n)})"
            if t
            else quoted(n)
            for n, t in dict(chosen).items()
        ]
        for _, transform in chosen:
            self.features.add(f"partitioned by {transform or 'value'}")
        self._say("partition", f"alter table {table.sql} set partitioned by ({', '.join(words)})")
        self._insert(table)

    def _partition_twice(self) -> None:
        self._partition()
        self._partition()
        self.features.add("partitioned twice")

    def _sort(self) -> None:
        table = self._table()
        if self._chance(0.2):
            self._say("reset sorted by", f"alter table {table.sql} reset sorted by")
        else:
            order = self._random.choice(("", " desc", " desc nulls last", " asc nulls first"))
            self._say("sort", f"alter table {table.sql} set sorted by (id{order})")
            self._insert(table)

    # -- other things in a schema

    def _view(self) -> None:
        table = self._table()
        name = (
            f"view {next(self._numbers)}" if not self._views or self._chance(0.7) else self._random.choice(self._views)
        )
        columns = ", ".join(quoted(column) for column in table.columns)
        query = self._random.choice(
            (
                f"select * from {table.sql}",
                f"select id, count(*) as n from {table.sql} group by id",
                f"select id + 1 as next, {columns} from {table.sql} where id % 2 = 0",
                f"select max(id) as newest from lake.{table.sql}",
            )
        )
        self._views += [name] if name not in self._views else []
        self._say("view", f"create or replace view {quoted(name)} as {query}")
        if self._chance(0.3):
            self._say("comment on a view", f"comment on view {quoted(name)} is 'what it''s for'")

    def _drop_view(self) -> None:
        if self._views:
            name = self._views.pop()
            self._say("drop view", f"drop view {quoted(name)}")

    def _macro(self) -> None:
        name = f"m{next(self._numbers)}"
        self._say(
            "macro",
            self._random.choice(
                (
                    f"create macro {name}(a, b := 2) as a + b",
                    f"create macro {name}(a) as table select * from range(3) r(i) where i > a",
                )
            ),
        )

    def _comment(self) -> None:
        table = self._table()
        column = self._random.choice(list(table.columns))
        self._say(
            "comment",
            f"comment on table {table.sql} is 'it''s ü'",
            f"comment on column {table.sql}.{quoted(column)} is 'c'",
        )

    # -- files

    def _add_files(self) -> None:
        """A table whose rows are in files that it did not write, narrower than its columns, and in folders by a key."""
        number = next(self._numbers)
        table = Table("main", f"added {number}", {"id": "bigint", "n": "integer", "v": "varchar", "p": "integer"})
        self._tables.append(table)
        first, self._rows = self._rows, self._rows + 12
        columns = "i::integer as id, (i % 100)::tinyint as n, 'v' || i as v, i % 3 as p"
        rows = f"select {columns} from range({first}, {first + 12}) r(i)"
        folder = f"{FOLDER}/added{number}"
        files = f"{text(table.name)}, '{folder}/*/*.parquet', hive_partitioning => true"
        self._say(
            "add files",
            f"create table {table.sql} (id bigint, n integer, v varchar, p integer)",
            f"copy ({rows}) to '{folder}' (format parquet, partition_by (p))",
            f"call ducklake_add_data_files('lake', {files})",
        )

    # -- maintenance

    def _flush(self) -> None:
        self._say("flush", "call ducklake_flush_inlined_data('lake')")

    def _merge_files(self) -> None:
        self._say("merge files", "call ducklake_merge_adjacent_files('lake')")

    def _rewrite(self) -> None:
        # Flushed first: the reference reads the statistics of inlined rows by today's names of columns, and flushes
        # deletes of a rewritten file beside those that it has, so that it then reads the file twice.
        self._flush()
        self._say("rewrite", "call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)")

    def _expire(self) -> None:
        version = self._random.choice((2, 3, 4))
        self._say("expire", f"call ducklake_expire_snapshots('lake', versions => [{version}])")
        if self._chance(0.6):
            self._say("clean up", "call ducklake_cleanup_old_files('lake', cleanup_all => true)")

    _CHANGES: Sequence[tuple[int, Callable[[Writer], None]]] = (
        (12, _insert),
        (8, _update),
        (8, _delete),
        (5, _merge),
        (2, _create_table),
        (3, _drop_table),
        (1, _truncate),
        (4, _add_column),
        (3, _drop_column),
        (3, _rename_column),
        (3, _retype_column),
        (2, _change_default),
        (1, _change_not_null),
        (4, _change_field),
        (4, _partition),
        (2, _partition_twice),
        (2, _sort),
        (4, _view),
        (1, _drop_view),
        (1, _macro),
        (2, _comment),
        (2, _add_files),
    )

    # Outside of transactions: in one that made a view, an option crashes DuckDB 1.5, and in one that altered a column,
    # a new name of the table leaves a lake that it no longer opens, with each column twice.
    _ALONE: Sequence[tuple[int, Callable[[Writer], None]]] = (
        (2, _rename_table),
        (2, _set_option),
        (2, _set_inlining),
        (1, _set_deletion_vectors),
    )

    _MAINTENANCE: Sequence[tuple[int, Callable[[Writer], None]]] = (
        (3, _flush),
        (3, _merge_files),
        (3, _rewrite),
        (2, _expire),
    )
