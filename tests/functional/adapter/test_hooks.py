"""The official suite: hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dbt.tests.adapter.hooks import fixtures
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks import test_run_hooks as run_hooks

from .dialect import hook_table, with_lake_target

_FIELDS = (
    "test_state",
    "target_dbname",
    "target_host",
    "target_name",
    "target_schema",
    "target_threads",
    "target_type",
    "target_user",
    "target_pass",
    "run_started_at",
    "invocation_id",
    "thread_id",
)

# Outside of a transaction alone: there it is an error to begin one.
_ALONE = {"sql": "begin; rollback", "transaction": False}

_PRE = [with_lake_target(model_hooks.MODEL_PRE_HOOK), _ALONE]
_POST = [_ALONE, with_lake_target(model_hooks.MODEL_POST_HOOK)]

_NEW_COLUMN = ["alter table {{ this }} add column new_col int", "update {{ this }} set new_col = 1"]


def _check(project: Any, table: str, state: str, count: int, is_thread: Callable[[str], bool]) -> None:
    """What the suite checks of the rows that hooks wrote, of a target that is a lake."""
    found = project.run_sql(
        f"select {', '.join(_FIELDS)} from {project.test_schema}.{table} where test_state = '{state}'", fetch="all"
    )
    assert len(found) == count
    credentials = project.adapter.config.credentials
    for values in found:
        row = dict(zip(_FIELDS, values, strict=True))
        assert row["target_dbname"] == project.database
        assert row["target_host"] == credentials.location
        assert row["target_name"] == "default"
        assert row["target_schema"] == project.test_schema
        assert row["target_threads"] == 4
        assert row["target_type"] == "ducklake"
        assert row["target_user"] == "tester"
        assert row["target_pass"] == ""
        assert row["run_started_at"]
        assert row["invocation_id"]
        assert is_thread(row["thread_id"])


class _OfModels:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(hook_table("model"))

    def check_hooks(self, state: str, project: Any, host: str | None, count: int = 1) -> None:
        _check(project, "on_model_hook", state, count, lambda name: name.startswith("Thread-"))


class TestPrePostModelHooks(_OfModels, model_hooks.TestPrePostModelHooks):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"pre-hook": _PRE, "post-hook": _POST}}}


class TestPrePostModelHooksUnderscores(_OfModels, model_hooks.TestPrePostModelHooksUnderscores):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"pre_hook": _PRE, "post_hook": _POST}}}


class TestHookRefs(_OfModels, model_hooks.TestHookRefs):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hook = """
            insert into {{ this.schema }}.on_model_hook select
                test_state,
                '{{ target.database }}' as target_dbname,
                '{{ target.catalog }}' as target_host,
                '{{ target.name }}' as target_name,
                '{{ target.schema }}' as target_schema,
                '{{ target.type }}' as target_type,
                '{{ target.author }}' as target_user,
                '{{ target.get(pass, "") }}' as target_pass,
                {{ target.threads }} as target_threads,
                '{{ run_started_at }}' as run_started_at,
                '{{ invocation_id }}' as invocation_id,
                '{{ thread_id }}' as thread_id
            from {{ ref('post') }}
        """
        return {"models": {"test": {"hooked": {"post-hook": [hook.strip()]}}}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hooked.sql": with_lake_target(fixtures.models__hooked),
            "post.sql": fixtures.models__post,
            "pre.sql": fixtures.models__pre,
        }


class _InConfig(_OfModels):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hooks.sql": with_lake_target(fixtures.models__hooks_configured)}


class TestPrePostModelHooksInConfig(_InConfig, model_hooks.TestPrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(_InConfig, model_hooks.TestPrePostModelHooksInConfigWithCount):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"pre-hook": _PRE, "post-hook": _POST}}}


class TestPrePostModelHooksInConfigKwargs(_OfModels, model_hooks.TestPrePostModelHooksInConfigKwargs):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hooks.sql": with_lake_target(fixtures.models__hooks_kwargs)}


class TestDuplicateHooksInConfigs(model_hooks.TestDuplicateHooksInConfigs):
    pass


class TestPrePostModelHooksOnSeeds(model_hooks.TestPrePostModelHooksOnSeeds):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hooks = [*_NEW_COLUMN, "select cast(null as {{ dbt.type_int() }}) as id"]
        return {"seed-paths": ["seeds"], "models": {}, "seeds": {"post-hook": hooks, "quote_columns": False}}


class TestPrePostModelHooksOnSnapshots(model_hooks.TestPrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(model_hooks.TestPrePostSnapshotHooksInConfigKwargs):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(model_hooks.TestPrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    model_hooks.TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    pass


class TestHooksRefsOnSeeds(model_hooks.TestHooksRefsOnSeeds):
    pass


class TestAfterRunHooks(run_hooks.TestAfterRunHooks):
    pass


class TestPrePostRunHooks(run_hooks.TestPrePostRunHooks):
    @pytest.fixture
    def setUp(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        project.run_sql(hook_table("run"))
        project.run_sql(f"drop table if exists {project.test_schema}.schemas")
        project.run_sql(f"drop table if exists {project.test_schema}.db_schemas")
        monkeypatch.setenv("TERM_TEST", "TESTING")

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "hook.sql": fixtures.macros__hook,
            "before-and-after.sql": with_lake_target(fixtures.macros__before_and_after),
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        schemas = "{% for schema in schemas %}('{{ schema }}'){% if not loop.last %},{% endif %}{% endfor %}"
        pairs = (
            "{% for db, schema in database_schemas %}('{{ db }}', '{{ schema }}'){% if not loop.last %},{% endif %}"
            "{% endfor %}"
        )
        return {
            # A table that is dropped before it is created is an error: hooks run in their order.
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.start_hook_order_test (id int)",
                "drop table {{ target.schema }}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.end_hook_order_test (id int)",
                "drop table {{ target.schema }}.end_hook_order_test",
                "create table {{ target.schema }}.schemas (schema string)",
                f"insert into {{{{ target.schema }}}}.schemas (schema) values {schemas}",
                "create table {{ target.schema }}.db_schemas (db string, schema string)",
                f"insert into {{{{ target.schema }}}}.db_schemas (db, schema) values {pairs}",
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: str | None) -> None:
        _check(project, "on_run_hook", state, 1, lambda name: name.startswith("Thread-") or name == "MainThread")
