"""The official suite: relations."""

from __future__ import annotations

from dbt.tests.adapter.relations import test_changing_relation_type as changing_relation_type
from dbt.tests.adapter.relations import test_dropping_schema_named as dropping_schema_named


class TestChangeRelationTypes(changing_relation_type.TestChangeRelationTypes):
    pass


class TestDropSchemaNamed(dropping_schema_named.TestDropSchemaNamed):
    pass
