"""Catalog databases: connection strings, errors, order of times and bulk inserts."""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.databases.connection_string import parse_catalog, parse_keywords
from dbt.adapters.ducklake.lake.databases.duckdb import DuckDB
from dbt.adapters.ducklake.lake.databases.mysql import MySQL
from dbt.adapters.ducklake.lake.databases.postgres import Postgres
from dbt.adapters.ducklake.lake.databases.sqlite import Sqlite
from dbt.adapters.ducklake.lake.encryption import FileKey
from dbt.adapters.ducklake.lake.errors import CatalogError
from dbt.adapters.ducklake.lake.retry import Retry

from ...lakes import Lake, LakeAddress
from .catalogs import NewLake, every_catalog

SECRET = "s3cr3t-9"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", {}),
        ("dbname=lake host=localhost", {"dbname": "lake", "host": "localhost"}),
        ("  dbname = lake\tport= 5 ", {"dbname": "lake", "port": "5"}),
        ("dbname='my lake' user=''", {"dbname": "my lake", "user": ""}),
        (r"password='it\'s \\ here'", {"password": r"it's \ here"}),
        (r"password=a\ b DBNAME=x", {"password": "a b", "dbname": "x"}),
        ("password=a=b'c", {"password": "a=b'c"}),
    ],
)
def test_connection_strings_are_quoted_as_in_libpq(text: str, words: dict[str, str]) -> None:
    assert parse_keywords(text) == words


@pytest.mark.parametrize("text", ["dbname", "dbname=x y", f"password='{SECRET}", f"= {SECRET}"])
def test_a_malformed_connection_string_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(CatalogError, match="goes wrong at character") as error:
        parse_catalog("postgres:" + text)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("text", "kind", "location"),
    [
        ("sqlite:lake/m.sqlite", Sqlite, "sqlite:lake/m.sqlite"),
        ("ducklake:sqlite:/a b/m.sqlite", Sqlite, "sqlite:/a b/m.sqlite"),
        ("SQLite:m.sqlite", Sqlite, "sqlite:m.sqlite"),
        ("sqlite:////tmp/m.sqlite", Sqlite, "sqlite:////tmp/m.sqlite"),
        ("postgres:dbname=lake host=h", Postgres, "postgres:dbname=lake host=h"),
        ("ducklake:postgres:dbname=lake host=h", Postgres, "postgres:dbname=lake host=h"),
        ("postgres:", Postgres, "postgres:"),
        ("postgres://u@h/lake", Postgres, "postgresql://u@h/lake"),
        ("postgres:postgresql://u@h:5/lake", Postgres, "postgresql://u@h:5/lake"),
        ("postgresql+psycopg://u@h/lake", Postgres, "postgresql+psycopg://u@h/lake"),
        ("duckdb:lake/m.ducklake", DuckDB, "duckdb:lake/m.ducklake"),
        ("duckdb:///lake/m.ducklake", DuckDB, "duckdb:lake/m.ducklake"),
        ("lake/m.ducklake", DuckDB, "duckdb:lake/m.ducklake"),
        ("ducklake:m.ducklake", DuckDB, "duckdb:m.ducklake"),
        (r"C:\lake\m.ducklake", DuckDB, r"duckdb:C:\lake\m.ducklake"),
        ("duckdb:a=b/m.ducklake", DuckDB, "duckdb:a=b/m.ducklake"),
        ("mysql:db=lake host=h user=u", MySQL, "mysql:db=lake host=h user=u"),
        ("mysql://u@h/lake", MySQL, "mysql://u@h/lake"),
        ("mariadb+pymysql://u@h/lake", MySQL, "mariadb+pymysql://u@h/lake"),
    ],
)
def test_every_catalog_string_names_its_database(text: str, kind: type, location: str) -> None:
    database = parse_catalog(text)
    assert (type(database), database.location) == (kind, location)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no catalog is named"),
        ("ducklake:", "no catalog is named"),
        ("oracle:x", "no catalog database is known as 'oracle'"),
        ("https://host/lake", "known as 'https'"),
        ("oracle+cx://u@h/lake", "can not be kept in oracle"),
        ("sqlite:", "'nothing' names none"),
        ("sqlite://", "'nothing' names none"),
        ("sqlite::memory:", "':memory:' names none"),
        ("duckdb:", "'nothing' names none"),
        ("duckdb:///:memory:", "':memory:' names none"),
        ("host=h password=" + SECRET, "put postgres: or mysql: in front"),
        (f"mysql:host=h passwort={SECRET}", "a word 'passwort'"),
        (f"mysql:host=h port=x password={SECRET}", "a port that is no number"),
        (f"mysql://u:{SECRET}@h/x?passwort={SECRET}", "a word 'passwort'"),
        (f"postgresql://u:{SECRET}@h:port/x", "looks like a URL"),
    ],
)
def test_an_invalid_catalog_string_is_refused(text: str, error: str) -> None:
    with pytest.raises(CatalogError, match=error) as raised:
        parse_catalog(text)
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "text",
    [
        f"postgres:host=127.0.0.1 port=1 password={SECRET}",
        f"postgres:host=127.0.0.1 port=1 password='a {SECRET}' sslpassword={SECRET}",
        f"postgres:host=127.0.0.1 port=1 passwort={SECRET}",
        f"postgresql://u:{SECRET}@127.0.0.1:1/x",
        f"postgres:postgresql://u@127.0.0.1:1/x?password={SECRET}",
        f"mysql:host=127.0.0.1 port=1 user=u password={SECRET}",
        f"mysql:host=127.0.0.1 port=1 user=u passwd={SECRET}",
        f"mysql://u:{SECRET}@127.0.0.1:1/x",
    ],
)
def test_secrets_are_in_no_repr_and_no_error(text: str) -> None:
    database = parse_catalog(text)
    shown = [repr(database), str(database), database.location, repr(database.engine())]
    with pytest.raises(CatalogError) as raised:
        Catalog.open(text, "data/", retry=Retry(wait_ms=1))
    shown += traceback.format_exception(raised.value)
    assert not [line for line in shown if SECRET in line]


def test_a_wrong_password_is_named_without_the_password(mysql_server: str) -> None:
    with pytest.raises(CatalogError, match="Access denied") as raised:
        Catalog.open(f"mysql:{mysql_server} password={SECRET} db=x", "data/", retry=Retry(wait_ms=1))
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_a_server_that_does_not_answer_is_tried_a_few_times() -> None:
    with pytest.raises(CatalogError, match=r"does not answer \(4 tries in \d+\.\d s\)"):
        Catalog.open("postgres:host=127.0.0.1 port=1 dbname=x", "data/", retry=Retry(wait_ms=1))


def test_a_driver_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise ImportError("No module named 'psycopg'")

    monkeypatch.setattr(sa, "create_engine", missing)
    with pytest.raises(CatalogError, match=r"pip install 'dbt-ducklake\[postgres\]'"):
        Catalog.open("postgres:host=127.0.0.1 port=1 dbname=x", "data/")


MOMENTS = [
    "2024-02-29 23:59:59+00",
    "2024-02-29 23:59:59.5+00",
    "2024-02-29 23:59:59.500001+00",
    "2024-03-01 05:29:59.500002+05:30",
    "2024-02-29 20:29:59.500003-03:30",
    "2024-03-01 12:59:59.999999+13",
    "2024-02-29 12:00:00-12",
    "2024-03-01T00:00:00.000001+00:00",
    "2024-03-01 00:00:00.000002",
]


def test_sqlite_orders_times_whatever_their_offset_and_digits() -> None:
    """The list is in order of time, but not in order of text."""
    database = parse_catalog("sqlite:x")
    with sa.create_engine("sqlite://").connect() as connection:
        found = [connection.scalar(sa.select(database.timestamp_sort_key(sa.literal(moment)))) for moment in MOMENTS]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    assert found == [(t.parse_instant(m) - epoch) // datetime.timedelta(microseconds=1) for m in MOMENTS]
    assert found == sorted(found)
    assert sorted(MOMENTS) != MOMENTS


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb", "mysql"])
def test_a_second_snapshot_of_the_same_number_is_a_race(kind: str, new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake(kind))
    with pytest.raises(sa.exc.DBAPIError) as raised, lake.catalog.write() as connection:
        connection.execute(t.snapshot.insert(), {"snapshot_id": 0})
    assert lake.catalog.database.is_write_conflict(raised.value)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb", "mysql"])
def test_other_errors_are_no_race(kind: str, new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake(kind))
    for statement in ("SELECT * FROM nothing_of_that_name", "SELEKT 1", "INSERT INTO ducklake_snapshot VALUES ('x')"):
        with pytest.raises(sa.exc.DBAPIError) as raised, lake.catalog.write() as connection:
            connection.execute(sa.text(statement))
        assert not lake.catalog.database.is_write_conflict(raised.value)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb", "mysql"])
@pytest.mark.parametrize("count", [1, 49, 5000])
def test_inserted_rows_are_read_back_unchanged(kind: str, count: int, new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake(kind))
    odd = ["", "a\tb\nc", "\\N", "\\.", "\"'`%s %(x)s", "\U0001f986 ünï", None]
    rows = [
        {
            "data_file_id": number,
            "table_id": 2**63 - 1,
            "column_id": None,
            "min_value": odd[number % 7],
            "max_value": None,
            "contains_nan": (True, False, None)[number % 3],
        }
        for number in range(count)
    ]
    with lake.catalog.write() as connection:
        lake.catalog.database.insert(connection, t.file_column_stats, rows)
        lake.catalog.database.insert(connection, t.files_scheduled_for_deletion, _scheduled(count))
    found = sorted(lake.rows(t.file_column_stats), key=lambda r: r["data_file_id"])
    assert [{k: r[k] for k in rows[0]} for r in found] == rows
    assert sorted(lake.rows(t.files_scheduled_for_deletion), key=lambda r: r["data_file_id"]) == _scheduled(count)


def _scheduled(count: int) -> list[dict[str, Any]]:
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=datetime.timezone.utc)
    step = datetime.timedelta(seconds=1)
    return [
        {"data_file_id": n, "path": f"{n}", "path_is_relative": n % 2 == 0, "schedule_start": moment + n * step}
        for n in range(count)
    ]


@every_catalog
def test_an_error_of_the_driver_shows_no_values(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    key = FileKey.new().catalog_text()
    row = {"data_file_id": 1, "table_id": 1, "encryption_key": key, "record_count": "no number"}
    with pytest.raises(sa.exc.SQLAlchemyError) as caught, lake.catalog.write() as connection:
        connection.execute(t.data_file.insert(), row)
        connection.execute(t.data_file.insert(), row)
    assert key not in str(caught.value)
