"""The official suite: basic."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic import test_adapter_methods as adapter_methods
from dbt.tests.adapter.basic import test_base as base
from dbt.tests.adapter.basic import test_docs_generate as docs_generate
from dbt.tests.adapter.basic import test_empty as empty
from dbt.tests.adapter.basic import test_ephemeral as ephemeral
from dbt.tests.adapter.basic import test_generic_tests as generic_tests
from dbt.tests.adapter.basic import test_get_catalog_for_single_relation as get_catalog_for_single_relation
from dbt.tests.adapter.basic import test_incremental as incremental
from dbt.tests.adapter.basic import test_singular_tests as singular_tests
from dbt.tests.adapter.basic import test_singular_tests_ephemeral as singular_tests_ephemeral
from dbt.tests.adapter.basic import test_table_materialization as table_materialization
from dbt.tests.adapter.basic import test_validate_connection as validate_connection
from dbt.tests.util import AnyFloat, AnyInteger, AnyString, AnyStringWith
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

_HAS_STATS = StatsItem("has_stats", "Has Stats?", True, False, "Indicates whether there are statistics for this table")


def _stats(node: str, *, rows: int | None = None, built_from: Any = None) -> dict[str, StatsItem]:
    """The statistics of a relation that has no rows that are known of, and those of a table."""
    found = [
        StatsItem("snapshot", "Snapshot", AnyInteger(), True, "The last snapshot that changed the relation"),
        StatsItem("changed_at", "Changed at", AnyString(), True, "When that snapshot was committed"),
        StatsItem("changed_by", "Changed by", "tester", True, "The author of that snapshot"),
        StatsItem("message", "Message", AnyStringWith(f"{node} ("), True, "The commit message of that snapshot"),
    ]
    if built_from is not None:
        what = "The inputs of that snapshot, and the snapshot at which each was read"
        found.append(StatsItem("built_from", "Built from", built_from, True, what))
    if rows is not None:
        found += [
            StatsItem("row_count", "Rows", rows, True, "How many rows the table has"),
            StatsItem("bytes", "Bytes", AnyInteger(), True, "The size of its data and delete files"),
            StatsItem("data_files", "Data files", AnyInteger(), True, "How many files hold its rows"),
        ]
    return {**{item.id: item for item in found}, "has_stats": _HAS_STATS}


def _of(project: Any, node: str) -> AnyStringWith:
    return AnyStringWith(f"{project.database}.{project.test_schema}.{node} at ")


def _in_catalog(stats: dict[str, StatsItem]) -> dict[str, dict[str, Any]]:
    """The same in catalog.json, where each number is a float."""
    found = {name: item.to_dict() for name, item in stats.items()}
    for item in found.values():
        if isinstance(item["value"], AnyInteger):
            item["value"] = AnyFloat()
    return found


class TestBaseCaching(adapter_methods.TestBaseCaching):
    pass


class TestSimpleMaterializations(base.TestSimpleMaterializations):
    pass


class _Docs:
    @pytest.fixture(scope="class")
    def profile_user(self, dbt_profile_target: dict[str, Any]) -> str:
        return str(dbt_profile_target["author"])


class TestDocsGenerate(_Docs, docs_generate.TestDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str) -> dict[str, Any]:
        return expected_catalog.base_expected_catalog(
            project,
            role=profile_user,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=_in_catalog(_stats("model", built_from=_of(project, "seed"))),
            seed_stats=_in_catalog(_stats("seed", rows=1)),
        )


class TestDocsGenReferences(_Docs, docs_generate.TestDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str) -> dict[str, Any]:
        return expected_catalog.expected_references_catalog(
            project,
            role=profile_user,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            bigint_type="bigint",
            view_type="view",
            table_type="table",
            model_stats=_in_catalog(_stats("ephemeral_summary", rows=1, built_from=_of(project, "seed"))),
            seed_stats=_in_catalog(_stats("seed", rows=1)),
            view_summary_stats=_in_catalog(_stats("view_summary", built_from=_of(project, "ephemeral_summary"))),
        )


class TestEmpty(empty.TestEmpty):
    pass


class TestEphemeral(ephemeral.TestEphemeral):
    pass


class TestGenericTests(generic_tests.TestGenericTests):
    pass


class TestGetCatalogForSingleRelation(get_catalog_for_single_relation.BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def columns(self) -> dict[str, ColumnMetadata]:
        types = {
            "id": "bigint",
            "first_name": "string",
            "email": "string",
            "ip_address": "string",
            "updated_at": "timestamp",
        }
        return {name: ColumnMetadata(type_, i, name, None) for i, (name, type_) in enumerate(types.items(), start=1)}

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any, columns: dict[str, ColumnMetadata]) -> CatalogTable:
        metadata = TableMetadata("table", project.test_schema, "my_seed", project.database, None, "tester")
        return CatalogTable(metadata, columns, _stats("my_seed", rows=1))

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any, columns: dict[str, ColumnMetadata]) -> CatalogTable:
        metadata = TableMetadata("view", project.test_schema, "my_view_model", project.database, None, "tester")
        return CatalogTable(metadata, columns, _stats("my_view_model", built_from=_of(project, "my_seed")))


class TestIncrementalBadStrategy(incremental.BaseIncrementalBadStrategy):
    pass


class TestIncrementalNotSchemaChange(incremental.TestBaseIncrementalNotSchemaChange):
    pass


class TestIncremental(incremental.Testincremental):
    pass


class TestSingularTests(singular_tests.TestSingularTests):
    pass


class TestSingularTestsEphemeral(singular_tests_ephemeral.TestSingularTestsEphemeral):
    pass


class TestTableMat(table_materialization.TestTableMat):
    pass


class TestValidateConnection(validate_connection.TestValidateConnection):
    pass
