"""What a user is told of an error of Spark's."""

from __future__ import annotations

import re

_PLAN = re.compile(r"(SQLSTATE: \w{5}(?:; line \d+ pos \d+)?);\n.*", re.DOTALL)
_STACK = re.compile(r"\n+(?:\s*at [\w.$<>/]+\(.*|JVM stacktrace:.*|Driver stacktrace:.*)", re.DOTALL)
_FUNCTION = re.compile(r"_lake_function_(\w+?)_[0-9a-f]{16}")
_TASK = re.compile(r"^(?:org\.apache\.spark\.\w+: )?Job aborted.*?\): (?:[\w.$]+: )?", re.DOTALL)


def message_of(error: BaseException) -> str:
    """The error's own words, without query plans and Java's stacks."""
    text = str(error).strip() or type(error).__name__
    text = _TASK.sub("", text)
    text = _STACK.sub("", text)
    text = _FUNCTION.sub(r"\1", text)
    return _PLAN.sub(r"\1", text).strip()
