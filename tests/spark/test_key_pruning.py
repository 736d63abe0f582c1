"""File pruning of DELETE, UPDATE and MERGE: few files are read, and no match is missed."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.read.lakes import Lake

from .helpers import files, run, value


def _scanned(lake: LakeSession, monkeypatch: pytest.MonkeyPatch, statement: str, table: str = "t") -> int:
    """Returns the largest number of data files of a table that one scan of a statement reads."""
    file_counts = [0]
    scan = Lake.plan_scan

    def spy(self: Lake, which: Any, *arguments: Any, **named: Any) -> Any:
        found = scan(self, which, *arguments, **named)
        if which.name == table:
            file_counts.append(len(found.files))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "plan_scan", spy)
        lake.execute(statement)
    return max(file_counts)


@pytest.fixture
def many_files(lake: LakeSession) -> LakeSession:
    """A table of 30 files. Each file has ten ids that no other file has."""
    run(
        lake,
        "create table t (id bigint, name string, g int) partitioned by (g)",
        "insert into t select id, concat('n', lpad(id, 3, '0')), id div 10 from range(300)",
        "alter table t reset partitioned by",
    )
    assert len(files(lake)) == 30
    return lake


@pytest.mark.parametrize(
    ("source", "condition", "count"),
    [
        ("(select * from values (5), (6), (155), (299), (1000) as x(id))", "t.id = s.id", 3),
        ("(select * from values (5), (155), (299) as x(id))", "s.id + 0 = t.id and t.name > 'a'", 3),
        ("(select * from values ('n005'), ('n155'), ('n299') as x(id))", "t.name = s.id", 3),
        ("(select * from values (5L), (155L), (299L), (null) as x(id))", "t.id = s.id", 3),
        ("(select id from range(145, 1500))", "t.id = s.id", 16),
        ("(select cast(null as bigint) as id)", "t.id = s.id", 0),
        ("(select 5 as id)", "t.id = s.id or t.name = 'n299'", 30),
        ("(select 5 as id)", "t.id = s.id and t.g = 7", 0),
        ("(select 5 as id)", "abs(t.id) = s.id", 30),
        ("(select 5 as id)", "t.id <=> s.id", 30),
    ],
)
def test_a_merge_reads_the_files_that_the_source_can_match(
    many_files: LakeSession, monkeypatch: pytest.MonkeyPatch, source: str, condition: str, count: int
) -> None:
    text = f"merge into t using {source} as s on {condition} when matched then update set g = -1"
    found = _scanned(many_files, monkeypatch, text)
    assert found <= count
    if count == 30:
        assert found == 30


def test_deletes_and_updates_read_the_files_that_can_match(
    many_files: LakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _scanned(many_files, monkeypatch, "delete from t where id = 7") == 1
    assert _scanned(many_files, monkeypatch, "update t set g = 0 where name in ('n015', 'n095')") == 2
    assert _scanned(many_files, monkeypatch, "delete from main.t as x where x.id between 195 and 205") == 2


def test_not_matched_by_source_reads_every_file(many_files: LakeSession) -> None:
    done = many_files.execute(
        "merge into t using (select 5 as id) s on t.id = s.id when matched then update set g = -1"
        " when not matched by source and t.id >= 290 then delete"
    )
    assert done.rows_affected == 11
    assert value(many_files, "select count(*) from t") == 290


@pytest.mark.parametrize(
    ("kind", "source", "condition", "count"),
    [
        ("int", "select ' 5 ' as k union all select '0155'", "t.k = s.k", 2),
        ("int", "select 5.0D as k union all select 155.5D", "t.k = s.k", 1),
        ("int", "select cast(5 as decimal(20,5)) as k", "t.k = s.k", 1),
        ("string", "select 5 as k union all select 155", "t.k = s.k", 2),
        ("double", "select 5 as k union all select double('NaN')", "t.k = s.k", 1),
        ("double", "select -0.0D as k", "t.k = s.k", 1),
        ("date", "select timestamp'1970-01-06 00:00:00' as k", "t.k = s.k", 1),
        ("date", "select '1970-01-06' as k", "t.k = s.k", 1),
        ("timestamp", "select date'1970-01-06' as k", "t.k = s.k", 1),
        ("timestamp", "select timestamp_ntz'1970-01-06 00:00:00' as k", "t.k = s.k", 1),
        ("timestamp_ntz", "select timestamp'1970-01-06 00:00:00+00' as k", "t.k = s.k", 1),
        ("decimal(10,2)", "select 5 as k union all select 6.001", "t.k = s.k", 1),
        ("boolean", "select 1 as k", "t.k = cast(s.k as boolean)", 299),
        ("binary", "select 'n005' as k", "t.k = cast(s.k as binary)", 1),
        ("bigint", "select 9007199254740993 as k", "t.k + 9007199254740988L = s.k", 1),
        ("bigint", "select 11 as k", "t.k = s.k div 2", 1),
        ("bigint", "select '005,6' as k", "t.k = int(split(s.k, ',')[0])", 1),
        ("bigint", "select date'1970-01-09' as k", "t.k = dayofweek(s.k)", 1),
        ("bigint", "select date'1970-01-09' as k", "t.k = weekday(s.k)", 1),
        ("string", "select 'N005' as k", r"t.k = regexp_replace(lower(s.k), '\\d{3}', '005')", 1),
        ("string", "select 'n,005' as k", "t.k = replace(s.k, ',')", 1),
        ("string", "select 5 as k union all select 155", "t.k = concat('n', to_char(s.k, '000'))", 2),
        ("string", "select 5 as k union all select 155", "t.k = format_string('n%03d', s.k)", 2),
        ("string", "select 'n005  ' as k", "t.k = trim(s.k)", 1),
        ("string", "select 'n005n005' as k", "t.k = substr(s.k, -4)", 1),
        ("date", "select date'1970-01-05' as k", "t.k = date_add(s.k, 1)", 1),
        ("date", "select '06.01.1970' as k", "t.k = to_date(s.k, 'dd.MM.yyyy')", 1),
        ("date", "select date'1969-12-06' as k", "t.k = add_months(s.k, 1)", 1),
        ("timestamp", "select 5 as k", "t.k = timestamp'1970-01-01 00:00:00' + make_dt_interval(s.k)", 1),
    ],
)
def test_no_match_is_missed_for_keys_of_other_types(
    lake: LakeSession, kind: str, source: str, condition: str, count: int
) -> None:
    values = {
        "string": "concat('n', lpad(id, 3, '0'))",
        "binary": "cast(concat('n', lpad(id, 3, '0')) as binary)",
        "date": "date_from_unix_date(cast(id as int))",
        "timestamp": "timestamp_seconds(id * 86400)",
        "timestamp_ntz": "cast(timestamp_seconds(id * 86400) as timestamp_ntz)",
        "boolean": "id <> 0",
    }
    if condition == "t.k = s.k" and kind == "string" and source.startswith("select 5 "):
        values["string"] = "lpad(id, 4, '0')"
    run(
        lake,
        f"create table t (k {kind}, g int) partitioned by (g)",
        f"insert into t select {values.get(kind, 'id')}, id div 10 from range(300)",
    )
    done = lake.execute(f"merge into t using ({source}) as s on {condition} when matched then delete")
    assert done.rows_affected == count


def test_a_key_expression_that_fails_on_unmatched_rows_raises_no_error(many_files: LakeSession) -> None:
    done = many_files.execute(
        "merge into t using (select * from values ('number', '5'), ('text', 'five') as x(kind, k)) as s"
        " on s.kind = 'number' and t.id = cast(s.k as bigint) when matched then delete"
    )
    assert done.rows_affected == 1


def test_a_source_with_very_many_keys_misses_no_match(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id bigint, g int) partitioned by (g)",
        "insert into t select id * 3, id div 1000 from range(20000)",
    )
    done = lake.execute(
        "merge into t using (select id * 2 as id from range(5000) union all select 50000 + id from range(4000)) as s"
        " on t.id = s.id when matched then delete"
    )
    expected = set(range(0, 60000, 3)) & ({*range(0, 10000, 2)} | {*range(50000, 54000)})
    assert done.rows_affected == len(expected)
