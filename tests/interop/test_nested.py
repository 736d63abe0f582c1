"""Lists, structs and maps, in each other and empty, with NULL at every level."""

from __future__ import annotations

from typing import Any

from .engines import Both, Step, by_duckdb, each


class Entries(tuple):
    """The pairs of a map."""


def literal(value: Any, engine: str) -> str:
    """A Python value as a literal of an engine's SQL."""

    def listed(values: Any) -> str:
        return ", ".join(literal(v, engine) for v in values)

    ours = engine == "spark"
    if value is None:
        return "null"
    if isinstance(value, Entries):
        if ours:
            return f"map({', '.join(f'{literal(k, engine)}, {literal(v, engine)}' for k, v in value)})"
        return f"map {{{', '.join(f'{literal(k, engine)}: {literal(v, engine)}' for k, v in value)}}}"
    if isinstance(value, list):
        return f"array({listed(value)})" if ours else f"[{listed(value)}]"
    if isinstance(value, dict):
        if ours:
            return f"named_struct({', '.join(f'{literal(k, engine)}, {literal(v, engine)}' for k, v in value.items())})"
        return f"{{{', '.join(f'{literal(k, engine)}: {literal(v, engine)}' for k, v in value.items())}}}"
    if isinstance(value, str) and not value.startswith("cast("):
        if ours:
            value = value.replace("\\", "\\\\")
            return "'" + value.replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"
    return str(value)


COLUMNS = {
    "l": ("array<int>", "int[]"),
    "ls": ("array<struct<a: int, b: array<string>>>", "struct(a int, b varchar[])[]"),
    "s": ("struct<x: int, l: array<int>, t: struct<u: string>>", "struct(x int, l int[], t struct(u varchar))"),
    "m": ("map<string, int>", "map(varchar, int)"),
    "ms": ("map<int, struct<a: int, b: string>>", "map(int, struct(a int, b varchar))"),
    "ll": ("array<array<int>>", "int[][]"),
    "mm": ("map<string, map<int, array<string>>>", "map(varchar, map(int, varchar[]))"),
}
ROWS: tuple[dict[str, Any], ...] = (
    {
        "l": [1, None, 3],
        "ls": [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": None}],
        "s": {"x": 1, "l": [1, 2], "t": {"u": "deep"}},
        "m": Entries([("a", 1), ("b", None)]),
        "ms": Entries([(1, {"a": 1, "b": "one"}), (2, None), (3, {"a": None, "b": None})]),
        "ll": [[1], None, [None, 2]],
        "mm": Entries([("k", Entries([(1, ["x", None]), (2, None)])), ("n", None)]),
    },
    dict.fromkeys(COLUMNS),
    {
        "s": {"x": None, "l": None, "t": None},
        "l": [None],
        "ls": [None],
        "ll": [None],
        "m": Entries([("", 0)]),
    },
    {"s": {"x": 5, "l": [None], "t": {"u": None}}},
)
EMPTY = {
    "l": [],
    "ls": [],
    "m": Entries(),
    "ms": Entries(),
    "ll": [],
    "mm": Entries(),
    "s": {"x": 0, "l": [], "t": None},
}
WORDS = ("a, b", "x'y", '"q"', "{", "}", "[1]", "NULL", "null", "", " lead ", "k=v", "k: v", "back\\slash", "é😀", "1")


def _insert(rows: Any, first: int) -> Step:
    texts = []
    for engine in ("spark", "duckdb"):
        values = [
            f"({first + i}, {', '.join(_typed(row.get(c), c, engine) for c in COLUMNS)})" for i, row in enumerate(rows)
        ]
        texts.append(f"insert into t values {', '.join(values)}")
    return each(*texts)


def _typed(value: Any, column: str, engine: str) -> str:
    kind = COLUMNS[column][engine == "duckdb"]
    return f"cast({literal(value, engine)} as {kind})"


def test_nested_values_are_the_same_in_both(lake: Both, writer: str) -> None:
    create = [f"create table t (id int, {', '.join(f'{c} {k[i]}' for c, k in COLUMNS.items())})" for i in (0, 1)]
    lake.write(
        writer,
        each(*create),
        _insert(ROWS, 0),
        _insert((EMPTY,), 10),
        _insert(ROWS * 4, 20),
        by_duckdb("delete from t where id in (1, 22)"),
        by_duckdb("call ducklake_flush_inlined_data('lake')"),
    )
    lake.compare()
    lake.agree("select id, s.t.u, s.l, get(ls, 0).b, m['a'] from t", "select id, s.t.u, s.l, ls[1].b, m['a'] from t")


def test_any_text_can_be_in_a_nested_value(lake: Both, writer: str) -> None:
    # In a struct's inlined text DuckDB doubles quotes and leaves backslashes, which it does not read so itself.
    plain = ["q" if {"'", "\\"} & set(w) else w for w in WORDS]
    rows = []
    for engine in ("spark", "duckdb"):
        values = [
            f"({i}, {literal([w, None, w], engine)}, {literal({'a b': p, 'c': p}, engine)},"
            f" {literal(Entries([(w, w)]), engine)}, {literal([{'v': [p]}], engine)})"
            for i, (w, p) in enumerate(zip(WORDS, plain, strict=True))
        ]
        rows.append([", ".join(values[:8]), ", ".join(values[8:]), ", ".join(values)])
    lake.write(
        writer,
        each(
            "create table t (id int, l array<string>, s struct<`a b`: string, c: string>, m map<string, string>,"
            " d array<struct<v: array<string>>>)",
            'create table t (id int, l varchar[], s struct("a b" varchar, c varchar), m map(varchar, varchar),'
            " d struct(v varchar[])[])",
        ),
        *(each(f"insert into t values {a}", f"insert into t values {b}") for a, b in zip(*rows, strict=True)),
    )
    lake.compare()


SCALARS = {
    "boolean": ("boolean", "true"),
    "tinyint": ("tinyint", "-128"),
    "bigint": ("bigint", "-9223372036854775808"),
    "double": ("double", "NaN"),
    "float": ("float", "-inf"),
    "decimal(38,10)": ("decimal(38,10)", "1234567890123456789012345678.0123456789"),
    "decimal(4,2)": ("decimal(4,2)", "-1.50"),
    "date": ("date", "0001-01-01"),
    "timestamp_ntz": ("timestamp", "1969-12-31 23:59:59.999999"),
    "timestamp": ("timestamptz", "1900-01-01 00:00:00.5+00"),
    "uuid": ("uuid", "7fffffff-0000-4000-8000-00000000000a"),
    "time": ("time", "12:30:00.5"),
    "timestamp_s": ("timestamp_s", "1969-12-31 23:59:59"),
    "timestamp_ms": ("timestamp_ms", "1969-12-31 23:59:59.999"),
    "uint8": ("utinyint", "255"),
    "uint32": ("uinteger", "4294967295"),
    "uint64": ("ubigint", "18446744073709551615"),
}


def test_every_scalar_can_be_in_a_list_a_map_and_a_struct(lake: Both, writer: str) -> None:
    # DuckDB can not read its own inlined rows with a nested date, timestamp or NaN, unless the catalog is
    # a DuckDB file: what it keeps there is the text of a cast.
    if lake.address.kind != "duckdb":
        lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    names = [f"c{i}" for i in range(len(SCALARS))]
    ours = ", ".join(
        f"{n}_l array<{k}>, {n}_m map<int, {k}>, {n}_s struct<v: {k}>" for n, k in zip(names, SCALARS, strict=True)
    )
    theirs = ", ".join(
        f"{n}_l {k}[], {n}_m map(int, {k}), {n}_s struct(v {k})"
        for n, (k, _) in zip(names, SCALARS.values(), strict=True)
    )
    in_spark, in_duckdb = [], []
    for kind, (duck, text) in SCALARS.items():
        known = {"uuid": "string", "time": "string", "timestamp_s": "timestamp_ntz", "timestamp_ms": "timestamp_ntz"}
        unsigned = {"uint8": "smallint", "uint32": "bigint", "uint64": "decimal(20,0)"}
        a = f"cast('{text}' as {({**known, **unsigned}).get(kind, kind)})"
        b = f"cast('{text}' as {duck})"
        in_spark += [f"array({a}, null)", f"map(1, {a}, 2, null)", f"named_struct('v', {a})"]
        in_duckdb += [f"[{b}, null]", f"map {{1: {b}, 2: null}}", f"{{'v': {b}}}"]
    nulls = ", ".join(["null"] * len(in_spark))
    lake.write(
        writer,
        each(f"create table t ({ours})", f"create table t ({theirs})"),
        each(f"insert into t values ({', '.join(in_spark)})", f"insert into t values ({', '.join(in_duckdb)})"),
        each(f"insert into t values ({nulls})", f"insert into t values ({nulls})"),
        each(f"insert into t values ({', '.join(in_spark)})", f"insert into t values ({', '.join(in_duckdb)})"),
    )
    lake.compare()
