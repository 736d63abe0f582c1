"""What the official suite asks of PostgreSQL's information schema, asked of the adapter."""

from __future__ import annotations

import pytest
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import get_connection


def _tables_in_schema(project: TestProjInfo) -> dict[str, str]:
    schema = project.adapter.Relation.create(database=project.database, schema=project.test_schema)
    with get_connection(project.adapter):
        return {r.identifier: str(r.type) for r in project.adapter.list_relations_without_caching(schema)}


@pytest.fixture(autouse=True)
def tables_in_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TestProjInfo, "get_tables_in_schema", _tables_in_schema)
