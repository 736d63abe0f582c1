"""Error messages for users: the message of Spark without query plans and stack traces."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.engine.errors import message_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1 pos 14;\n"
            "'Project [*]\n+- 'UnresolvedRelation [x], [], false\n",
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1 pos 14",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\nselect 1/x\n       ^^^\n",
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\nselect 1/x\n       ^^^",
        ),
        (
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times,"
            " most recent failure: Lost task 0.0 in stage 1.0 (TID 1) (host executor driver):"
            " java.io.IOException: No space left on device\n\tat java.base/java.io.Out.write(Out.java:1)\n\nDriver"
            " stacktrace:",
            "No space left on device",
        ),
        (
            "[WRONG_NUM_ARGS] The `_lake_function_my_twice_ad8c0279d9dea685` requires 1 parameters. SQLSTATE: 42605",
            "[WRONG_NUM_ARGS] The `my_twice` requires 1 parameters. SQLSTATE: 42605",
        ),
        ("", "ValueError"),
    ],
)
def test_only_the_message_is_left(text: str, expected: str) -> None:
    assert message_of(ValueError(text)) == expected
