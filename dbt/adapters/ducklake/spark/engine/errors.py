"""Error messages of Spark, shortened for users."""

from __future__ import annotations

import re

_QUERY_PLAN = re.compile(r"(SQLSTATE: \w{5}(?:; line \d+ pos \d+)?);\n.*", re.DOTALL)
_STACK_TRACE = re.compile(r"\n+(?:\s*at [\w.$<>/]+\(.*|JVM stacktrace:.*|Driver stacktrace:.*)", re.DOTALL)
_TEMPORARY_FUNCTION = re.compile(r"_lake_function_(\w+?)_[0-9a-f]{16}")
_ABORTED_JOB = re.compile(r"^(?:org\.apache\.spark\.\w+: )?Job aborted.*?\): (?:[\w.$]+: )?", re.DOTALL)


def message_of(error: BaseException) -> str:
    """Returns the message of an error without query plans, stack traces and the names of temporary functions."""
    text = str(error).strip() or type(error).__name__
    text = _ABORTED_JOB.sub("", text)
    text = _STACK_TRACE.sub("", text)
    text = _TEMPORARY_FUNCTION.sub(r"\1", text)
    return _QUERY_PLAN.sub(r"\1", text).strip()
