"""Profiles: every field is validated, and no secret is shown."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ducklake.credentials import DucklakeCredentials

SECRET = "hunter2"
LAKE = {"catalog": "sqlite:lake/metadata.sqlite", "data_path": "lake/data/"}


def credentials(**fields: Any) -> DucklakeCredentials:
    data = {**LAKE, **fields}
    DucklakeCredentials.validate(data)
    return DucklakeCredentials.from_dict(data)


def test_a_catalog_and_a_data_path_are_enough() -> None:
    found = credentials()
    assert (found.database, found.schema, found.type) == ("lake", "main", "ducklake")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"catalog": None}, ["catalog is missing", "sqlite:"]),
        ({"catalog": "oracle:x"}, ["catalog is wrong", "oracle"]),
        ({"catlog": "sqlite:x"}, ["catlog is not known", "catalog"]),
        ({"read_only": "yes"}, ["read_only", "'yes'", "true or false"]),
        ({"data_inlining_row_limit": -1}, ["data_inlining_row_limit", "-1", "a number of rows"]),
        ({"schema": ""}, ["schema", "a name"]),
        ({"retry": {"max_count": "many"}}, ["retry.max_count", "'many'", "a number of tries"]),
        ({"retry": {"tries": 3}}, ["retry.tries is not known", "max_count"]),
        ({"retry": 3}, ["retry takes", "3"]),
        ({"spark": {"url": "x"}}, ["spark.url is not known", "master"]),
        ({"spark": {"master": "local", "remote": "sc://x"}}, ["spark.master", "spark.remote", "exclude each other"]),
        ({"spark": {"keep_alive": "30"}}, ["spark.keep_alive", "'30'", "30m"]),
        ({"spark": {"keep_alive": "30m", "remote": "sc://x"}}, ["spark.keep_alive", "spark.remote"]),
        ({"storage": {"password": "x"}}, ["storage.password is not known", "secret"]),
        ({"attach": {"name": "x"}}, ["attach takes", "a list of lakes"]),
        ({"attach": ["x"]}, ["attach[0]", "name and catalog"]),
        ({"attach": [{"name": "x"}]}, ["attach[0].catalog is missing"]),
        ({"attach": [{"name": "x", "catalog": "sqlite:y", "version": 3}]}, ["attach[0].version is not known"]),
        ({"attach": [{"name": "x", "catalog": "sqlite:y", "snapshot_version": "new"}]}, ["snapshot_version", "'new'"]),
    ],
)
def test_a_wrong_field_is_named_with_what_is_expected(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DbtRuntimeError) as error:
        credentials(**fields)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"catalog": f"postgres:dbname=lake host=h password={SECRET}"},
        {"catalog": f"postgresql://me:{SECRET}@h/lake"},
        {"storage": {"key": "me", "secret": SECRET}},
        {"spark": {"remote": f"sc://h:15002/;token={SECRET}"}},
        {"spark": {"config": {"spark.hadoop.fs.s3a.secret.key": SECRET}}},
        {"attach": [{"name": "x", "catalog": f"postgres:dbname=x password={SECRET}"}]},
    ],
)
def test_secrets_are_in_no_repr_and_no_connection_info(fields: dict[str, Any]) -> None:
    found = credentials(**fields)
    shown = [repr(found), str(found), str(found.connection_info()), str(found.connection_info(with_aliases=True))]
    assert not any(SECRET in text for text in [*shown, found.unique_field])


@pytest.mark.parametrize(
    "fields",
    [
        {"catalog": {"password": SECRET}},
        {"catalog": f"postgres:{SECRET}"},
        {"storage": [SECRET]},
        {"storage": {"secret": [SECRET]}},
        {"spark": {"config": SECRET}},
        {"spark": {"remote": [SECRET]}},
        {"attach": SECRET},
        {"attach": [{"name": "x", "catalog": [SECRET]}]},
    ],
)
def test_secrets_are_in_no_error(fields: dict[str, Any]) -> None:
    with pytest.raises(DbtRuntimeError) as error:
        credentials(**fields)
    assert SECRET not in str(error.value)
