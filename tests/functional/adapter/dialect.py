"""Fixtures of the official suite, said in Spark SQL."""

from __future__ import annotations

import re
from pathlib import Path

from dbt.tests.adapter.hooks import fixtures
from dbt.tests.adapter.simple_seed import seeds

STRING_LITERAL = """
{% macro ducklake__string_literal(s) -%}
  cast('{{ s }}' as string)
{%- endmacro %}
"""

_MOMENT = re.compile(r"'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)'")

SEED_EXPECTED = _MOMENT.sub(
    r"timestamp'\1'",
    seeds.seeds__expected_sql.replace('"', "`")
    .replace("TIMESTAMP WITHOUT TIME ZONE", "timestamp")
    .replace("TEXT", "string"),
)


def hook_table(of: str) -> str:
    """What creates the table that hooks write to, for hooks of a `model` or of a `run`."""
    file = Path(fixtures.__file__).parent / "data" / f"seed_{of}.sql"
    return file.read_text().replace("TEXT", "string")


def with_string(properties: str) -> str:
    """Properties whose columns have Spark's name for a text."""
    return properties.replace("data_type: text", "data_type: string")


def with_lake_target(sql: str) -> str:
    """A hook that writes down the target's fields: those that a lake has instead of a server's."""
    fields = {"dbname": "database", "host": "catalog", "user": "author"}
    return re.sub(r"target\.(dbname|host|user)\b", lambda found: f"target.{fields[found[1]]}", sql)


def in_spark(sql: str, moment: str = "timestamp") -> str:
    """SQL of the suite's fixtures with Spark's types; a text is not stored into a column of moments."""
    sql = re.sub(r"\bTIMESTAMP\b( WITHOUT TIME ZONE)?", moment, sql)
    sql = sql.replace("null::timestamp", f"cast(null as {moment})")
    sql = re.sub(r"(?<=[\s:])text\b", "string", sql, flags=re.IGNORECASE)
    return _MOMENT.sub(rf"{moment}'\1'", sql)
