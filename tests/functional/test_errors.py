"""What dbt prints for the mistakes that people make, and audit hooks that write timestamps as text."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

CUSTOMERS = "select 1 as id, 'a' as name"
MISSPELLED = "-- depends_on: {{ ref('customers') }}\nselect * from {{ target.schema }}.custmers"
NO_SUCH_LAKE = "select * from warehouse.raw.customers"
MISSING_COLUMN = "select c.id,\n  c.nam\nfrom {{ ref('customers') }} c"
DIVIDED = "select id,\n  1 / (id - 1) as share\nfrom {{ ref('customers') }}"
MERGED = """
{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
select id, cast(name as int) as number from {{ ref('customers') }}
"""
TEST = "select *\nfrom {{ ref('customers') }} where 1 / (id - 1) > 0"

# As audit hooks of projects and dbt_artifacts do it: in text, by VALUES and from VALUES.
CREATE_AUDIT = """
create table if not exists {{ target.schema }}.audit
  (started timestamp_ntz, zoned timestamp, full_refresh boolean, threads int, note string)
"""
INSERT_AUDIT = """
insert into {{ target.schema }}.audit values
  ('{{ run_started_at }}', '{{ run_started_at }}', '{{ flags.FULL_REFRESH }}', '{{ target.threads }}', 'hook')
"""
INSERT_ARTIFACT = """
insert into {{ target.schema }}.audit (started, full_refresh, note)
select col1, col2, nullif(col3, '') from values ('{{ run_started_at }}', '{{ flags.FULL_REFRESH }}', '')
"""


class TestErrors:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "customers.sql": "{{ config(materialized='table') }} " + CUSTOMERS,
            "misspelled.sql": MISSPELLED,
            "no_such_lake.sql": NO_SUCH_LAKE,
            "missing_column.sql": MISSING_COLUMN,
            "divided.sql": "{{ config(materialized='table') }}\n" + DIVIDED,
            "merged.sql": MERGED,
        }

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"share.sql": TEST}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": [CREATE_AUDIT], "on-run-end": [INSERT_AUDIT, INSERT_ARTIFACT]}

    def test_a_message_is_short_and_in_the_projects_words(self, project: Any) -> None:
        results = [*run_dbt(["run"], expect_pass=False), *run_dbt(["test"], expect_pass=False)]
        messages = {
            r.node.name: (r.message or "").replace("\n  ", "\n") for r in results if r.status in ("error", "fail")
        }
        expected = {
            "misspelled": f"there is no table or view {project.test_schema}.custmers in lake lake at snapshot",
            "no_such_lake": "there is no lake warehouse (the lakes here: lake)",
            "missing_column": "Did you mean one of the following? [`c`.`name`, `c`.`id`]",
            "divided": "(line 2, position 3) ==\n  1 / (id - 1) as share\n  ^^^^^^^^^^^^",
            "merged": 'The value \'a\' of the type "STRING" cannot be cast to "INT"',
            "share": "where 1 / (id - 1) > 0\n",
        }
        assert messages.keys() == expected.keys()
        for name, part in expected.items():
            assert part in messages[name], messages[name]
            assert "_lake_" not in messages[name]
            assert "\tat " not in messages[name]
        assert f"did you mean {project.test_schema}.customers?" in messages["misspelled"]

        audit = project.run_sql(
            "select count(*), count(started), count_if(started = cast(zoned as timestamp_ntz)), count_if(full_refresh),"
            f" max(threads) from {project.test_schema}.audit",
            fetch="one",
        )
        assert tuple(audit) == (4, 4, 2, 0, 4)  # the hooks of two commands
