"""The official suite: query comment."""

from __future__ import annotations

from dbt.tests.adapter.query_comment import test_query_comment as query_comment


class TestEmptyQueryComments(query_comment.TestEmptyQueryComments):
    pass


class TestMacroArgsQueryComments(query_comment.TestMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(query_comment.TestMacroInvalidQueryComments):
    pass


class TestMacroQueryComments(query_comment.TestMacroQueryComments):
    pass


class TestNullQueryComments(query_comment.TestNullQueryComments):
    pass


class TestQueryComments(query_comment.TestQueryComments):
    pass
