"""Inlined rows that the reference wrote are read as it reads them itself."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.ducklake.lake import evolution, inlined
from dbt.adapters.ducklake.lake.duckdb_text import decode, parse_blob
from dbt.adapters.ducklake.lake.errors import UnsupportedError
from dbt.adapters.ducklake.lake.files import table_files
from dbt.adapters.ducklake.lake.snapshot import Table
from dbt.adapters.ducklake.lake.types import Column

from ...lakes import Lake, attached, column, columns
from .catalogs import NewLake, every_reference_catalog

D = datetime.date
T = datetime.datetime
UTC = datetime.timezone.utc

ODD_TEXTS = [
    *("", " ", "NULL", "null", "'", '"', "\\", "\\'", "it's", 'say "hi"', "a, b", "[x]", "{y}", "k=v", "a: b", "(p)"),
    *(" lead", "trail ", "line\nfeed", "tab\t", "ünï\U0001f986", "\\x41", "''", "%s :x ?", "\\\\n", "true", "1", "a;b"),
]

# A type, literals of it, and their values in Arrow.
SCALARS: dict[str, tuple[list[str], list[Any]]] = {
    "BOOLEAN": (["true", "false"], [True, False]),
    "TINYINT": (["-128", "127"], [-128, 127]),
    "SMALLINT": (["-32768", "32767"], [-32768, 32767]),
    "INTEGER": (["-2147483648", "2147483647"], [-(2**31), 2**31 - 1]),
    "BIGINT": (["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
    "UTINYINT": (["0", "255"], [0, 255]),
    "USMALLINT": (["0", "65535"], [0, 65535]),
    "UINTEGER": (["0", "4294967295"], [0, 2**32 - 1]),
    "UBIGINT": (["0", "18446744073709551615"], [Decimal(0), Decimal(2**64 - 1)]),
    "HUGEINT": (["-5", str(2**127 - 1)], ["-5", str(2**127 - 1)]),
    "UHUGEINT": (["5", str(2**128 - 1)], ["5", str(2**128 - 1)]),
    "FLOAT": (["1.5", "'-inf'", "'inf'", "3.4e38"], [1.5, float("-inf"), float("inf"), 3.3999999521443642e38]),
    "DOUBLE": (["0.1", "1e-300", "1.7976931348623157e308"], [0.1, 1e-300, 1.7976931348623157e308]),
    "DECIMAL(4,1)": (["-999.9", "0.1"], [Decimal("-999.9"), Decimal("0.1")]),
    "DECIMAL(38,10)": (
        ["1234567890123456789012345678.0123456789", "0.0000000001"],
        [Decimal("1234567890123456789012345678.0123456789"), Decimal("0.0000000001")],
    ),
    "VARCHAR": (["'" + text.replace("'", "''") + "'" for text in ODD_TEXTS], list(ODD_TEXTS)),
    "BLOB": (["'\\x00\\xFF'::BLOB", "'a''b\\x5C'::BLOB", "''::BLOB"], [b"\x00\xff", b"a'b\\", b""]),
    "DATE": (["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"], [D(2024, 2, 29), D(1, 1, 1), D(9999, 12, 31)]),
    "TIMESTAMP": (
        ["'2024-02-29 23:59:59.123456'", "'1969-12-31 00:00:00'"],
        [T(2024, 2, 29, 23, 59, 59, 123456), T(1969, 12, 31)],
    ),
    "TIMESTAMP_S": (["'2024-02-29 23:59:59'"], [T(2024, 2, 29, 23, 59, 59)]),
    "TIMESTAMP_MS": (["'2024-02-29 23:59:59.123'"], [T(2024, 2, 29, 23, 59, 59, 123000)]),
    "TIMESTAMP_NS": (["'2024-02-29 23:59:59.123456789'"], ["2024-02-29 23:59:59.123456789"]),
    "TIMESTAMPTZ": (["'2024-02-29 23:59:59.5+05:30'"], [T(2024, 2, 29, 18, 29, 59, 500000, tzinfo=UTC)]),
    "TIME": (["'23:59:59.5'", "'00:00:00'"], ["23:59:59.5", "00:00:00"]),
    "UUID": (["'01234567-89ab-cdef-0123-456789abcdef'"], ["01234567-89ab-cdef-0123-456789abcdef"]),
    "INTERVAL": (["INTERVAL 3 DAY"], ["3 days"]),
    "JSON": (['\'{"a": [1, null, "x, y"]}\''], ['{"a": [1, null, "x, y"]}']),
}


def read(lake: Lake, name: str = "t", at: int | None = None) -> list[dict[str, Any]]:
    with lake.catalog.read() as connection:
        at = lake.latest if at is None else at
        state = lake.snapshots.state(connection, lake.catalog.snapshot_at_version(connection, at))
        found = inlined.read_inlined_rows(connection, lake.catalog, state.table("main", name), at)
    return [] if found is None else found.rows.to_pylist()


@every_reference_catalog
def test_every_type_is_read_alone_and_in_lists_structs_and_maps(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    wrong = []
    with attached(address, data_inlining_row_limit=100) as connection:
        for number, (type_, (literals, _)) in enumerate(SCALARS.items()):
            nested = f"l {type_}[], s STRUCT(x {type_}, y {type_}[]), m MAP(VARCHAR, {type_})"
            connection.execute(f"CREATE TABLE t{number} (a {type_}, {nested})")
            rows = ", ".join(
                f"(CAST({v} AS {type_}), [CAST({v} AS {type_}), NULL],"
                f" {{'x': CAST({v} AS {type_}), 'y': [CAST({v} AS {type_})]}}, MAP {{'k=1, 2': CAST({v} AS {type_})}})"
                for v in literals
            )
            empty = "(NULL, NULL, NULL, NULL), (NULL, [], {'x': NULL, 'y': NULL}, MAP {})"
            connection.execute(f"INSERT INTO t{number} VALUES {rows}, {empty}")
    lake = Lake(address)
    for number, (type_, (_, values)) in enumerate(SCALARS.items()):
        expected = [{"a": v, "l": [v, None], "s": {"x": v, "y": [v]}, "m": [("k=1, 2", v)]} for v in values] + [
            {"a": None, "l": None, "s": None, "m": None},
            {"a": None, "l": [], "s": {"x": None, "y": None}, "m": []},
        ]
        try:
            found = [{k: row[k] for k in "alsm"} for row in read(lake, f"t{number}")]
        except Exception as error:
            wrong.append(f"{type_}: {type(error).__name__} {error}")
            continue
        for have, want in zip(found, expected, strict=True):
            wrong += [f"{type_}.{k}: {have[k]!r}, not {want[k]!r}" for k in "alsm" if have[k] != want[k]]
    # The reference writes this text in a form that it cannot read again itself.
    assert [w for w in wrong if "0 months 3 days 0 microseconds" not in w] == []


@every_reference_catalog
def test_odd_names_of_fields_and_keys_are_read(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        connection.execute("""
            CREATE TABLE t (
                "co l" INTEGER, s STRUCT("a b" INTEGER, "it's" VARCHAR, "x: y" INTEGER, "q""q" INTEGER),
                m MAP(STRUCT(a INTEGER, b VARCHAR), MAP(INTEGER, VARCHAR[])))""")
        connection.execute("""
            INSERT INTO t VALUES (1, {'a b': 1, 'it''s': 'x, y', 'x: y': 2, 'q"q': 3},
                MAP {{'a': 1, 'b': 'k=v'}: MAP {1: ['a', NULL], 2: []}})""")
    (row,) = read(Lake(address))
    assert row["co l"] == 1
    assert row["s"] == {"a b": 1, "it's": "x, y", "x: y": 2, 'q"q': 3}
    assert row["m"] == [({"a": 1, "b": "k=v"}, [(1, ["a", None]), (2, [])])]


@every_reference_catalog
def test_inlined_rows_follow_schema_evolution(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        for statement in (
            "CREATE TABLE t (a INTEGER, b VARCHAR, s STRUCT(x INTEGER, y INTEGER))",
            "INSERT INTO t VALUES (1, 'one', {'x': 1, 'y': 10})",
            "ALTER TABLE t RENAME a TO id",
            "ALTER TABLE t ALTER id TYPE BIGINT",
            "ALTER TABLE t ADD COLUMN c DATE DEFAULT '2024-01-01'",
            "INSERT INTO t VALUES (2, 'two', {'x': 2, 'y': 20}, '2025-05-05')",
            "ALTER TABLE t DROP COLUMN b",
            "ALTER TABLE t ADD COLUMN s.z VARCHAR",
            "ALTER TABLE t DROP COLUMN s.x",
            "ALTER TABLE t ADD COLUMN b DOUBLE",
            "INSERT INTO t VALUES (3, {'y': 30, 'z': 'zz'}, NULL, 0.5)",
            "DELETE FROM t WHERE id = 2",
        ):
            connection.execute(statement)
        theirs = connection.execute("SELECT id, s, c, b, rowid FROM t ORDER BY rowid").fetchall()
    lake = Lake(address)
    rows = read(lake)
    assert [(r["id"], r["s"], r["c"], r["b"], r["row_id"]) for r in rows] == theirs
    assert theirs == [
        (1, {"y": 10, "z": None}, D(2024, 1, 1), None, 0),
        (3, {"y": 30, "z": "zz"}, None, 0.5, 2),
    ]
    assert [(r["a"], r["b"], r["s"]) for r in read(lake, at=2)] == [(1, "one", {"x": 1, "y": 10})]
    assert [r["id"] for r in read(lake, at=6)] == [1, 2]
    assert read(lake, at=1) == []


@every_reference_catalog
def test_the_reference_keeps_inlining_after_our_changes(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create(a="int32", b="varchar")
    changes: list[Callable[[Table], Table]] = [
        lambda x: evolution.set_not_null(x, ("a",), True),
        lambda x: evolution.set_default(x, ("b",), "later"),
        lambda x: evolution.rename_column(x, ("b",), "c"),
    ]
    for number, change in enumerate([*changes, None]):
        with lake.duckdb() as connection:
            connection.execute(f"INSERT INTO t (a) VALUES ({number})")
        if change:
            with lake.transaction() as tx:
                tx.alter_table(tx.state.table("main", "t"), change)
    rows = [(row["a"], row["c"]) for row in read(lake)]
    assert rows == [(0, None), (1, None), (2, "later"), (3, "later")]
    assert rows == lake.seen_by_duckdb("FROM t ORDER BY a")


@every_reference_catalog
def test_positions_deleted_in_the_catalog_are_found_with_their_files(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    with lake.duckdb() as connection:
        connection.execute("DELETE FROM t WHERE id = 2")
    with lake.catalog.read() as connection:
        (now,) = table_files(connection, lake.catalog, lake.table(), "t/", 3)
        (before,) = table_files(connection, lake.catalog, lake.table(), "t/", 2)
    assert now.has_deletes
    assert not before.has_deletes


@every_reference_catalog
def test_the_reference_inlines_into_tables_made_here(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create(
        a="int32",
        b="varchar",
        c="decimal(10,2)",
        d="timestamptz",
        e={"x": "int32", "y": ["varchar"]},
        f=("varchar", "date"),
        g="blob",
        h="boolean",
        i="uuid",
        j="float64",
        k="uint64",
        l="timestamp_ns",
        m="time",
    )
    with lake.duckdb() as connection:
        connection.execute("""
            INSERT INTO t VALUES (
                1, 'b', 1.5, '2024-01-01 00:00:00+00', {'x': 1, 'y': ['z']}, MAP {'k': DATE '2024-01-01'},
                'x'::BLOB, true, '01234567-89ab-cdef-0123-456789abcdef', 0.5, 7, '2024-01-01 00:00:00.000001',
                '01:02:03')""")
        (theirs,) = connection.execute("SELECT a, b, c, e, g, h, j, k FROM t").fetchall()
    (row,) = read(lake)
    assert tuple(row[k] for k in "abceghjk") == theirs
    assert lake.changes[-1] == "inlined_insert:1"


# -- the text form of nested values


def test_bytes_are_read_from_duckdbs_text() -> None:
    assert parse_blob("") == b""
    assert parse_blob("ab\\x00\\xFF\\x5C") == b"ab\x00\xff\\"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("[]", ["int32"], []),
        ("[1, NULL]", ["int32"], [1, None]),
        ("[NULL, 'NULL', '']", ["varchar"], [None, "NULL", ""]),
        (r"['it\'s', 'a\\b', plain words]", ["varchar"], ["it's", r"a\b", "plain words"]),
        ("{'a': 1, 'b': [x, y]}", {"a": "int32", "b": ["varchar"]}, {"a": 1, "b": ["x", "y"]}),
        ("{k=1, 'k, 2'=NULL}", ("varchar", "int32"), [("k", 1), ("k, 2", None)]),
        ("[{}, {1={'x': NULL}}]", [("int32", {"x": "date"})], [[], [(1, {"x": None})]]),
    ],
)
def test_nested_values_are_read_from_duckdbs_text(text: str, kind: Any, value: Any) -> None:
    assert decode(text, column("c", kind)) == value


@pytest.mark.parametrize("text", ["[1", "[1, ", "[1] more", "{'a': 1}", "1", "['x"])
def test_a_malformed_value_is_an_error_with_a_way_out(text: str) -> None:
    kind: Column = columns(c=["varchar"])[0]
    with pytest.raises(UnsupportedError, match="can not be read: .* ducklake_flush_inlined_data"):
        decode(text, kind)
