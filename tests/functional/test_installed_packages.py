"""Idioms of packages that people install: each is a small package in packages/, as `dbt deps` installs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

PACKAGES = Path(__file__).parent / "packages"


def local(*names: str) -> dict[str, Any]:
    """The content of packages.yml."""
    return {"packages": [{"local": str(PACKAGES / name)} for name in names]}


@pytest.fixture(scope="class", autouse=True)
def installed(project: Any) -> None:
    run_dbt(["deps"])


def ask(project: Any, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(sql, fetch="all")]


class TestAPackageThatObserves:
    """elementary: temporary relations without a schema, tables by bare names, and statements in hooks."""

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return local("observer")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"flags": {"require_explicit_package_overrides_for_builtin_materializations": False}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='table') }} select id, 'it''s \\\\ \"it\"' as note from range(5)",
            "late.sql": "select * from {{ ref('orders') }} where id > 2",
            "schema.yml": """
models:
  - name: orders
    columns: [{name: id, data_tests: [unique, {accepted_values: {values: ['1'], config: {severity: warn}}}]}]
""",
        }

    def test_what_commands_did_is_observed(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["build"])
        assert "observed 8" in log
        observed = "{schema}_observed"
        assert ask(
            project,
            f"select split(node_id, '[.]')[0], status, count(*) from {observed}.node_runs group by 1, 2 order by 1, 2",
        ) == [("model", "success", 6), ("test", "pass", 1), ("test", "warn", 1)]
        (code,) = ask(project, f"select code from {observed}.known_nodes where node_id = 'model.test.orders'")[0]
        assert "'it''s \\\\ \"it\"'" in code
        samples = ask(project, f"select test_id, count(*) from {observed}.failed_rows group by 1")
        assert [(test.split("_")[0], count) for test, count in samples] == [("accepted", 2)]

        write_file("select id as renamed from {{ ref('orders') }}", project.project_root, "models", "late.sql")
        run_dbt(["run", "--vars", "with_thread: true"])
        assert ask(project, f"select status, runs from {observed}.last_status where node_id = 'model.test.late'") == [
            ("success", 2)
        ]
        (code,) = ask(project, f"select code from {observed}.known_nodes where node_id = 'model.test.late'")[0]
        assert "renamed" in code
        assert ask(project, f"select count(*) from {observed}.known_nodes") == [(8,)]
        assert ask(project, f"select count(*), count(thread) from {observed}.node_runs") == [(14, 6)]
        left = "select table_name from information_schema.tables where table_schema like '{schema}%' order by 1"
        assert [name for (name,) in ask(project, left)] == [
            "failed_rows", "known_nodes", "last_status", "late", "node_runs", "orders",
        ]  # fmt: skip


class TestAPackageThatUploads:
    """dbt_artifacts: `file_format: ''`, and rows of literals for typed columns."""

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return local("uploader")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-end": "{{ uploader.upload(results) }}"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"orders.sql": "{{ config(materialized='table') }} select id from range(5)"}

    def test_results_are_uploaded(self, project: Any) -> None:
        for _ in range(2):
            _, log = run_dbt_and_capture(["run"])
            assert "meant for other adapters" not in log
        rows = "select node_id, count(*), max(rows_affected), count(run_started_at) from {schema}.model_executions"
        assert ask(project, f"{rows} where node_id like '%orders' group by 1") == [("model.test.orders", 2, 5, 2)]


class TestAPackageForManyWarehouses:
    """Fivetran's packages and others: settings of BigQuery, Databricks, Redshift, Snowflake and ClickHouse."""

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return local("warehouses")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+table_options": {"data_inlining_row_limit": 0}}}

    def test_settings_for_other_adapters_are_one_warning(self, project: Any) -> None:
        _, log = run_dbt_and_capture(["run"])
        assert log.count("meant for other adapters") == 1
        (line,) = (line for line in log.splitlines() if "  warehouses: " in line)
        assert re.findall(r"(\w+) \((\d+) model", line) == [
            *(("buckets", "1"), ("cluster_by", "1"), ("clustered_by", "1"), ("engine", "1")),
            *(("file_format", "2"), ("liquid_clustered_by", "1"), ("location_root", "1"), ("order_by", "1")),
            *(("partition_by", "1"), ("tblproperties", "1"), ("transient", "1")),
        ]
        folder = "regexp_extract(data_file, '(year=.*)/', 1)"
        files = f"select {folder} from ducklake_list_files('{{schema}}.%s') order by 1"
        assert ask(project, files % "by_month") == [("year=2025/month=12",), ("year=2026/month=1",)]
        assert ask(project, files % "by_number") == [("",)]
        run_dbt(["run", "-s", "overwritten"])
        assert ask(project, "select id from {schema}.overwritten order by 1") == [(2,), (3,), (9,)]

    def test_a_model_of_the_own_project_still_fails(self, project: Any) -> None:
        write_file("{{ config(cluster_by=['id']) }} select 1 as id", project.project_root, "models", "own.sql")
        results = run_dbt(["run", "-s", "own"], expect_pass=False)
        assert "cluster_by has no meaning in a lake: use sorted_by" in results[0].message


class TestAPackageOfDialects:
    """Packages that only know `spark__` or `databricks__`: Spark's are found, a shim gives the others a name."""

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return local("dialects")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"dispatch": [{"macro_namespace": "dialects", "search_order": ["test", "dialects"]}]}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        call = "{{ return(dialects.databricks__json_text(json, path)) }}"
        return {"shims.sql": f"{{% macro ducklake__json_text(json, path) %}}{call}{{% endmacro %}}"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "days.sql": """
                {%- set json = "'{\\"a\\": {\\"b\\": 7}}'" -%}
                select {{ dialects.day_name("date'2026-01-31'") }} as name, {{ dialects.json_text(json, 'a.b') }} as b
            """
        }

    def test_shims_are_found(self, project: Any) -> None:
        run_dbt(["run"])
        assert ask(project, "select * from {schema}.days") == [("Saturday", "7")]


class TestAPackageWithNamesInDoubleQuotes:
    """fivetran_utils: `"end"` is a string in Spark, unless a setting makes it a name."""

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, Any]:
        return local("identifiers")

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # In a profile this is one line of spark.config. Here all tests share the SparkSession.
        setting = "spark.sql.ansi.doubleQuotedIdentifiers"
        return {"on-run-start": f"set {setting}=true", "on-run-end": f"reset {setting}"}

    def test_names_in_double_quotes_are_names(self, project: Any) -> None:
        run_dbt(["run"])
        assert ask(project, "select id, `end` from {schema}.spans order by id") == [(1, "feb"), (2, "mar")]
        assert ask(project, "select * from {schema}.same") == [(2, "mar")]
