"""The catalog database rules out files, and none that the test of each file would keep."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import files as lake_files
from dbt.adapters.ducklake.lake.files import NewDataFile, table_files
from dbt.adapters.ducklake.lake.predicates import (
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    Value,
)
from dbt.adapters.ducklake.lake.pruning import FileStats, may_match
from dbt.adapters.ducklake.lake.snapshot import Table
from dbt.adapters.ducklake.lake.stats import ColumnStats
from dbt.adapters.ducklake.lake.types import Column

from ...lakes import Lake, LakeAddress
from .catalogs import every_catalog

TYPES = {
    "small": "int8",
    "id": "int64",
    "big": "uint64",
    "day": "date",
    "at": "timestamp",
    "zoned": "timestamptz",
    "word": "varchar",
    "price": "decimal(10,2)",
    "ratio": "float64",
}
WORDS = ("", " ", "a", "a ", "a\t", "A", "ab", "b", "z", "Z", "é", "ü", "日", "😀", "'", "%", "_", "~")
ODD_TEXTS = ("x", "-", "1-2", " 7", "1.5", "infinity", "0044-03-15 (BC)", "12024-01-01", "")


def _day(draw: random.Random) -> datetime.date:
    return datetime.date(2020, 1, 1) + datetime.timedelta(days=draw.randint(-40, 40))


def _moment(draw: random.Random) -> datetime.datetime:
    return datetime.datetime.combine(_day(draw), datetime.time(draw.randrange(24), draw.randrange(60)))


def _value(draw: random.Random, type_: str) -> Value:
    """A literal that a query may compare with a column of the type, of the same kind or of a related one."""
    if type_ == "varchar":
        return draw.choice(WORDS) + draw.choice(WORDS)
    if type_ in ("date", "timestamp", "timestamptz"):
        return draw.choice((_day(draw), _moment(draw), _day(draw).isoformat(), str(_moment(draw))))
    number = draw.choice((draw.randint(-50, 50), draw.randint(-(2**64), 2**64), 2**63 - 1, -(2**63)))
    return draw.choice((number, number, float(number), draw.uniform(-50, 50), decimal.Decimal(number) / 4))


def _text(draw: random.Random, type_: str) -> str:
    """A bound as a writer has it in the catalog, now and then an odd one."""
    if draw.random() < 0.08:
        return draw.choice(ODD_TEXTS)
    if type_ == "varchar":
        return draw.choice(WORDS) + draw.choice(WORDS)
    if type_ == "date":
        return _day(draw).isoformat()
    if type_ == "timestamp":
        return draw.choice((str(_moment(draw)), f"{_moment(draw)}.25", _day(draw).isoformat()))
    if type_ == "timestamptz":
        return f"{_moment(draw)}{draw.choice(('+00', '+02', '-11:30'))}"
    limit = {"int8": 127, "uint64": 2**64 - 1}.get(type_, 2**63 - 1)
    number = draw.choice((draw.randint(-50, 50), limit, -limit, draw.randint(-limit, limit)))
    number = abs(number) if type_ == "uint64" else max(-limit, min(limit, number))
    return f"{draw.uniform(-50, 50):.2f}" if type_ in ("decimal(10,2)", "float64") else str(number)


def _stats(draw: random.Random, column: Column) -> ColumnStats:
    low, high = _text(draw, column.type), _text(draw, column.type)
    values, nulls = draw.choice((0, 5, None)), draw.choice((0, 5, None))
    missing = draw.random() < 0.1
    return ColumnStats(0, values, nulls, None if missing else low, high if draw.random() < 0.9 else None, None)


def _predicate(draw: random.Random, depth: int = 2) -> Predicate:
    name = draw.choice(list(TYPES))
    kind = draw.randrange(9)
    if kind == 0:
        return In((name,), tuple(_value(draw, TYPES[name]) for _ in range(draw.choice((1, 3, 30)))))
    if kind == 1:
        return draw.choice((IsNull, IsNotNull))((name,))
    if kind == 2:
        return StartsWith((name,), draw.choice(WORDS))
    if kind in (3, 4) and depth:
        parts = tuple(_predicate(draw, depth - 1) for _ in range(2))
        return And(parts) if kind == 3 else Or(parts)
    return Comparison((name,), draw.choice(("=", "=", "<>", "<", "<=", ">", ">=")), _value(draw, TYPES[name]))


FILES, SEEDS = 150, 300


@pytest.fixture(scope="module")
def lakes(new_module_lake: Callable[[str], LakeAddress]) -> Callable[[str], tuple[Lake, list[FileStats]]]:
    """Returns the lake of a kind, with a table of files whose statistics are drawn, and those statistics."""
    made: dict[str, tuple[Lake, list[FileStats]]] = {}

    def lake_of(kind: str) -> tuple[Lake, list[FileStats]]:
        if kind not in made:
            lake, draw = Lake(new_module_lake(kind)), random.Random(7)
            table = lake.create(**TYPES)
            stats = [
                {column.id: _stats(draw, column) for column in table.columns if draw.random() < 0.95}
                for _ in range(FILES)
            ]
            with lake.transaction() as tx:
                files = [NewDataFile(f"{i}.parquet", True, 5, 1, 1, found) for i, found in enumerate(stats)]
                tx.append(tx.state.table("main", "t"), files)
            made[kind] = lake, [FileStats(found) for found in stats]
        return made[kind]

    return lake_of


def _numbers(connection: sa.Connection, lake: Lake, table: Table, predicate: Predicate, zone: str = "UTC") -> set[int]:
    """The numbers of the files that are left of a table, which all are of the first two snapshots."""
    found = table_files(connection, lake.catalog, table, "", 2, predicate, zone)
    return {int(file.path.removesuffix(".parquet")) for file in found}


@every_catalog
def test_the_database_rules_out_no_file_that_may_match(
    kind: str, lakes: Callable[[str], tuple[Lake, list[FileStats]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, stats = lakes(kind)
    table = lake.table()
    tested: list[int] = []

    def counted(*arguments: object) -> Callable[[FileStats], bool]:
        test = lake_files_compile(*arguments)

        def count(file: FileStats) -> bool:
            tested.append(1)
            return test(file)

        return count

    lake_files_compile = lake_files.compile_predicate
    monkeypatch.setattr(lake_files, "compile_predicate", counted)
    ruled_out = 0
    with lake.catalog.read() as connection:
        for seed in range(SEEDS):
            draw = random.Random(seed)
            predicate, zone = _predicate(draw), draw.choice(("UTC", "Europe/Berlin", "Pacific/Kiritimati"))
            expected = {
                i for i, found in enumerate(stats) if may_match(predicate, found, table.columns, time_zone=zone)
            }
            tested.clear()
            assert _numbers(connection, lake, table, predicate, zone) == expected, predicate
            ruled_out += FILES - len(tested)
    assert ruled_out > SEEDS * FILES / 10


@every_catalog
def test_the_database_leaves_only_the_files_around_a_value(kind: str, new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake(kind))
    lake.create(id="int64", word="varchar", day="date")
    first = datetime.date(2020, 1, 1)
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        for i in range(100):
            day = str(first + datetime.timedelta(i))
            bounds = (str(10 * i), str(10 * i + 9)), (f"w{i:03}", f"w{i:03}z"), (day, day)
            stats = {c.id: ColumnStats(0, 5, 0, *b, None) for c, b in zip(table.columns, bounds, strict=True)}
            tx.append(table, [NewDataFile(f"{i}.parquet", True, 5, 1, 1, stats)])
    wanted: list[Predicate] = [
        Comparison(("id",), "=", 777),
        Comparison(("word",), "=", "w077"),
        Comparison(("day",), "=", first + datetime.timedelta(77)),
        In(("id",), (770, 772)),
        And((Comparison(("id",), ">=", 770), Comparison(("id",), "<", 779))),
    ]

    table = lake.table()
    with lake.catalog.read() as connection:
        for predicate in wanted:
            query = lake_files._files_with_stats(lake.catalog, table, 2, predicate, "UTC", [1, 2, 3])
            assert len(connection.execute(query).all()) == 1, predicate
            assert _numbers(connection, lake, table, predicate) == {77}
