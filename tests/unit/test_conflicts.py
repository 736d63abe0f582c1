"""Concurrent commits: which pass each other, which must not, and that none is lost or done twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from dbt.adapters.ducklake.lake import evolution
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Commit, Retry
from dbt.adapters.ducklake.lake.conflicts import Changes, Intent, check, parse_changes
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.snapshot import MacroImpl, quoted
from dbt.adapters.ducklake.lake.transaction import Transaction

from ..conftest import LakeAddress
from ..lakes import Lake, attached, column, columns
from ..workers import append_often, die_in_a_commit, in_processes, paper_file, spawn

NewLake = Callable[[str], LakeAddress]

CATALOGS = ["sqlite", "postgres", "duckdb", "mysql"]
every_catalog = pytest.mark.parametrize("kind", CATALOGS)
every_reference_catalog = pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])


# -- every pair of changes


def insert(tx: Transaction) -> None:
    tx.append(tx.state.table("main", "t"), [paper_file("new.parquet", 2)])


def delete(tx: Transaction) -> None:
    tx.truncate(tx.state.table("main", "t"))


def merge(tx: Transaction) -> None:
    table = tx.state.table("main", "t")
    tx.append(table, [paper_file("merged.parquet", 2)])
    tx.rewrites(table)


def replace(tx: Transaction) -> None:
    tx.replace_table(tx.state.table("main", "t"), columns(id="int64", more="int32"))


def alter(tx: Transaction) -> None:
    table = tx.state.table("main", "t")
    tx.alter_table(table, lambda x: evolution.add_column(x, (), column("more", "int32"), tx.column_ids(x)))


def rename(tx: Transaction) -> None:
    tx.rename(tx.state.table("main", "t"), tx.state.schema("main"), "renamed")


def drop(tx: Transaction) -> None:
    tx.drop(tx.state.table("main", "t"))


def comment(tx: Transaction) -> None:
    tx.set_tags(tx.state.table("main", "t"), (("comment", "said"),))


def create_table(tx: Transaction) -> None:
    tx.create_table(tx.state.schema("s"), "new", columns(id="int64"))


def create_view(tx: Transaction) -> None:
    tx.create_view(tx.state.schema("s"), "NEW", "select 1 as a", "duckdb")


def create_schema(tx: Transaction) -> None:
    tx.create_schema("fresh")


def drop_schema(tx: Transaction) -> None:
    tx.drop_schema("s", cascade=True)


def alter_view(tx: Transaction) -> None:
    tx.set_tags(tx.state.relation("s", "v"), (("comment", "said"),))


def drop_view(tx: Transaction) -> None:
    tx.drop(tx.state.relation("s", "v"))


def insert_elsewhere(tx: Transaction) -> None:
    tx.append(tx.state.table("s", "other"), [paper_file("elsewhere.parquet", 2)])


def create_macro(tx: Transaction) -> None:
    tx.create_macro(tx.state.schema("s"), "NEW", (MacroImpl("duckdb", "1", "scalar"),))


def drop_macro(tx: Transaction) -> None:
    macro = tx.state.find_macro("s", "m")
    assert macro is not None
    tx.drop_macro(macro)


def replace_macro(tx: Transaction) -> None:
    drop_macro(tx)
    tx.create_macro(tx.state.schema("s"), "m", (MacroImpl("duckdb", "2", "scalar"),))


CHANGES = [
    *(insert, delete, merge, replace, alter, rename, drop, comment),
    *(create_table, create_view, create_schema, drop_schema, alter_view, drop_view, insert_elsewhere),
    *(create_macro, drop_macro, replace_macro),
]

# What must not pass what another did; everything else does.
CONFLICTS: dict[Callable[[Transaction], None], set[Callable[[Transaction], None]]] = {
    insert: {replace, alter, drop, comment},
    delete: {delete, replace, alter, drop, comment},
    merge: {insert, delete, merge, replace, alter, drop, comment},
    replace: {insert, delete, merge, replace, alter, drop, comment},
    alter: {replace, alter, drop, comment},
    rename: {replace, alter, rename, drop, comment},
    drop: {drop},
    comment: {replace, alter, drop, comment},
    create_table: {create_table, create_view, drop_schema},
    create_view: {create_table, create_view, drop_schema},
    create_schema: {create_schema},
    drop_schema: {
        *(create_table, create_view, drop_schema, drop_view),
        *(create_macro, drop_macro, replace_macro),
    },
    alter_view: {alter_view, drop_view, drop_schema},
    drop_view: {drop_view, drop_schema},
    insert_elsewhere: {drop_schema},
    create_macro: {create_macro, drop_schema},
    drop_macro: {drop_macro, replace_macro, drop_schema},
    replace_macro: {drop_macro, replace_macro, drop_schema},
}

NAMES: dict[Callable[[Transaction], None], list[str]] = {
    rename: ["main.t", "main.renamed"],
    create_table: ["s.new"],
    create_view: ["s.new"],
    create_schema: ["schema fresh"],
    drop_schema: ["schema s", "s.v", "macro m"],
    alter_view: ["s.v"],
    drop_view: ["s.v"],
    insert_elsewhere: ["s.other"],
    create_macro: ["macro s.new"],
    drop_macro: ["macro m"],
    replace_macro: ["macro m", "macro s.m"],
}


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Lake]:
    """Copies of one lake in SQLite, which cost nothing to make."""
    import itertools
    import shutil

    folder = tmp_path_factory.mktemp("conflicts")
    original = Lake(LakeAddress("sqlite", f"sqlite:{folder}/original.sqlite", f"{folder}/data/"))
    with original.transaction() as tx:
        schema = tx.create_schema("s")
        tx.create_table(tx.state.schema("main"), "t", columns(id="int64"))
        tx.create_table(schema, "other", columns(id="int64"))
        tx.create_view(schema, "v", "select 1 as a", "duckdb")
        tx.create_macro(schema, "m", (MacroImpl("duckdb", "1", "scalar"),))
    with original.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("first.parquet", 3)])
    numbers = itertools.count()

    def copy() -> Lake:
        number = next(numbers)
        shutil.copy(f"{folder}/original.sqlite", f"{folder}/{number}.sqlite")
        return Lake(LakeAddress("sqlite", f"sqlite:{folder}/{number}.sqlite", f"{folder}/data/"))

    return copy


@pytest.mark.parametrize("theirs", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("mine", CHANGES, ids=lambda change: change.__name__)
def test_a_commit_passes_another_or_names_it(
    mine: Callable[[Transaction], None], theirs: Callable[[Transaction], None], copies: Callable[[], Lake]
) -> None:
    lake = copies()
    transaction = lake.begin("me", "mine")
    mine(transaction)
    with lake.transaction(author="Ada", message="theirs first") as other:
        theirs(other)
    if theirs not in CONFLICTS[mine]:
        assert transaction.commit().snapshot.id == lake.latest == 4
        return
    with pytest.raises(
        ConflictError, match=r"snapshot 3 by Ada \(theirs first\) meanwhile .*; nothing was changed"
    ) as raised:
        transaction.commit()
    assert lake.latest == 3
    assert any(name in str(raised.value) for name in NAMES.get(mine, ["main.t"]))


def _on(kind: str) -> Intent:
    return Intent(tables=frozenset({(kind, 7)}), names={7: "main.t"})


@pytest.mark.parametrize(
    ("mine", "changes", "conflicts"),
    [
        ("truncated", "merge_adjacent:7", True),
        ("truncated", "rewrite_delete:7", True),
        ("truncated", "compacted_table:7", True),
        ("truncated", "inline_flush:7", True),
        ("truncated", "inlined_delete:7", True),
        ("truncated", "inlined_insert:7", False),
        ("deleted", "rewrite_delete:7,inlined_delete:7", False),  # what it did to the same files is asked of them
        ("inlined", "inline_flush:7", True),
        ("inlined", "inlined_delete:7", True),
        ("inlined", "inlined_insert:7", False),
        ("truncated", "deleted_from_table:70", False),
        ("inserted", "merge_adjacent:7,inline_flush:7", False),
        ("compacted", "deleted_from_table:7", True),
        ("compacted", "inlined_delete:7", True),
        ("compacted", "dropped_table:7", True),
        ("compacted", "merge_adjacent:7", True),
        ("compacted", "inserted_into_table:7", False),
        ("flushed", "inlined_delete:7", True),
        ("flushed", "inline_flush:7", True),
        ("flushed", "inlined_insert:7", False),
        ("altered", "altered_view:7", True),
        ("dropped", "dropped_view:7", True),
    ],
)
def test_what_the_reference_does_is_passed_or_not(mine: str, changes: str, conflicts: bool) -> None:
    others = [Commit(3, changes, None, None, None)]
    if conflicts:
        with pytest.raises(ConflictError, match="main.t, but snapshot 3 meanwhile"):
            check(_on(mine), others)
    else:
        check(_on(mine), others)


# -- changes_made

ODD_NAMES = ["plain", 'q"uote', "do.t", "com,ma", 'a","b', '".,"', "sp ace", "ünï\U0001f986", "x" * 200, "colon:1"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_comes_back_from_changes_made(name: str) -> None:
    text = f"created_schema:{quoted(name)},created_table:{quoted(name)}.{quoted(name)},dropped_table:5"
    changes = parse_changes(text)
    assert changes.created_schemas == {name.lower()}
    assert changes.created == {(name.lower(), name.lower())}
    assert changes.tables == {("dropped", 5)}


def test_macros_and_kinds_of_a_later_version_are_no_changes_of_tables() -> None:
    changes = parse_changes('created_scalar_macro:"Main"."m",dropped_table_macro:3,something_new:"a,b":4')
    assert changes == Changes(
        created_macros=frozenset({("scalar", "main", "m")}), dropped_macros=frozenset({("table", 3)})
    )


@every_reference_catalog
def test_the_reference_writes_the_same_words(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        for number, name in enumerate(ODD_NAMES):
            connection.execute(f"CREATE TABLE {quoted(name)} (a INT)")
            connection.execute(f"ALTER TABLE {quoted(name)} ADD COLUMN b INT")
            connection.execute(
                f"DROP TABLE {quoted(name)}" if number % 2 else f"INSERT INTO {quoted(name)} VALUES (1, 2)"
            )
    changes = [parse_changes(text) for text in Lake(address).changes]
    assert [name for c in changes for _, name in c.created] == [name.lower() for name in ODD_NAMES]
    assert Counter(kind for c in changes for kind, _ in c.tables) == {"altered": 10, "dropped": 5, "inserted": 5}


# -- many writers at once


def _assert_all_landed(lake: Lake, writers: int, times: int) -> None:
    files = lake.rows(t.data_file)
    assert Counter(f["path"] for f in files) == Counter(
        f"{w}-{n}.parquet" for w in range(writers) for n in range(times)
    )
    assert len({f["data_file_id"] for f in files}) == len({f["begin_snapshot"] for f in files}) == writers * times
    position = 0
    for file in sorted(files, key=lambda f: f["row_id_start"]):
        assert file["row_id_start"] == position
        position += file["record_count"]
    (stats,) = lake.rows(t.table_stats)
    assert (stats["next_row_id"], stats["record_count"]) == (position, position)
    snapshots = sorted(lake.rows(t.snapshot), key=lambda s: s["snapshot_id"])
    assert [s["snapshot_id"] for s in snapshots] == list(range(writers * times + 2))
    assert [s["snapshot_time"] for s in snapshots] == sorted({s["snapshot_time"] for s in snapshots})
    assert snapshots[-1]["next_file_id"] == writers * times
    authors = Counter(r["author"] for r in lake.rows(t.snapshot_changes))
    assert {a: n for a, n in authors.items() if a} == {f"writer {w}": times for w in range(writers)}
    (column_stats,) = (c for c in lake.rows(t.table_column_stats) if c["column_id"] == 1)
    assert (column_stats["min_value"], column_stats["max_value"]) == ("1", str(1 + writers))


@every_catalog
def test_appends_of_threads_all_land_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    address = lake.address
    with ThreadPoolExecutor(8) as pool:
        attempts = list(pool.map(lambda n: append_often(n, address.catalog, address.data_path, 4), range(8)))
    assert sum(attempts) >= 32
    _assert_all_landed(lake, 8, 4)


@pytest.mark.processes
@every_catalog
def test_appends_of_processes_all_land_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    attempts = in_processes(4, append_often, lake.address.catalog, lake.address.data_path, 8)
    assert all(isinstance(a, int) for a in attempts), attempts
    _assert_all_landed(lake, 4, 8)


@every_catalog
def test_of_many_who_replace_a_table_one_wins(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    barrier, answers = threading.Barrier(6), []

    def work(number: int) -> None:
        tx = lake.begin(f"writer {number}")
        table = tx.replace_table(tx.state.table("main", "t"), columns(id="int64"))
        tx.append(table, [paper_file(f"{number}.parquet", 1)])
        barrier.wait()
        try:
            answers.append(tx.commit().snapshot.id)
        except ConflictError as error:
            answers.append(str(error))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert sorted(map(str, answers))[0] == "2"
    assert sum("by writer" in str(a) for a in answers) == 5
    assert len(lake.rows(t.data_file)) == 1


def test_a_commit_gives_up_after_its_tries_and_says_so(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"), retry=Retry(max_count=2, wait_ms=1))
    lake.create()
    monkeypatch.setattr(type(lake.catalog.database), "is_race", lambda *_: True)
    monkeypatch.setattr("dbt.adapters.ducklake.lake.changes.Snapshotter._file_id", lambda _: None)
    tx = lake.begin()
    insert(tx)
    with pytest.raises(ConflictError, match=r"first 3 times in a row.*raise retry.max_count"):
        tx.commit()
    assert lake.latest == 1


# -- a writer that dies


@pytest.mark.processes
@every_catalog
@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_commit_that_is_killed_half_way_never_was(kind: str, after: int, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("first.parquet", 3)])
    every = t.metadata.sorted_tables
    before = [lake.rows(table) for table in every]
    process = spawn.Process(target=die_in_a_commit, args=(lake.address.catalog, lake.address.data_path, after))
    process.start()
    process.join(120)
    assert process.exitcode == -9
    assert [lake.rows(table) for table in every] == before
    with lake.transaction() as tx:
        insert(tx)
    assert lake.latest == 3


# -- with the reference


@every_reference_catalog
def test_the_reference_may_commit_between_our_begin_and_commit(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    tx = lake.begin()
    table = tx.state.table("main", "t")
    tx.append(table, [lake.file(tx, table, {"id": [1], "name": ["ours"]})])
    with lake.duckdb() as connection:
        connection.execute("INSERT INTO t VALUES (2, 'inlined')")
        connection.execute("INSERT INTO t SELECT range + 3, 'theirs' FROM range(20)")
        connection.execute("CREATE TABLE u (a INT)")
    assert tx.commit().snapshot.id == 5
    assert lake.seen_by_duckdb("SELECT count(*), count(DISTINCT rowid), min(id), max(id) FROM t") == [(22, 22, 1, 22)]


@every_reference_catalog
def test_what_the_reference_did_meanwhile_stops_us(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["one"]})
    tx = lake.begin()
    delete(tx)
    with lake.duckdb() as connection:
        connection.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(ConflictError, match=r"deletes from main.t, but snapshot 3 meanwhile deleted from it"):
        tx.commit()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_we_may_commit_within_a_transaction_of_the_reference(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.duckdb() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t SELECT range, 'theirs' FROM range(20)")
        lake.append({"id": [100], "name": ["ours"]})
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*), count(DISTINCT rowid), max(id) FROM t").fetchone() == (21, 21, 100)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (200, 'lost')")
        with lake.transaction() as tx:
            alter(tx)
        with pytest.raises(Exception, match="altered it"):
            connection.execute("COMMIT")
    assert lake.latest == 4
