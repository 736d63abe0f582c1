"""Error messages of Spark for users: short, and in the words of the query's author."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ...lake.errors import NotFoundError
from .source_text import in_author_words

_QUERY_PLAN = re.compile(r"(SQLSTATE: \w{5}(?:; line \d+ pos \d+)?);\n.*", re.DOTALL)
_STACK_TRACE = re.compile(r"\n+(?:\s*at [\w.$<>/]+\(.*|JVM stacktrace:.*|Driver stacktrace:.*)", re.DOTALL)
_TEMPORARY_FUNCTION = re.compile(r"_lake_function_(\w+?)_[0-9a-f]{16}")
_IS_TRANSLATED = "_lake_is_translated"
"""The attribute that marks an error whose message is in its author's words already."""
_MISSING_FILE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (.+?)\. +File does"
)
_ABORTED_JOB = re.compile(r"^(?:org\.apache\.spark\.\w+: )?Job aborted.*?\): (?:[\w.$]+: )?", re.DOTALL)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind if it has none."""
    return next(iter(message_of(error).splitlines()), "") or type(error).__name__


def message_of(error: BaseException) -> str:
    """Returns the message of an error without query plans and stack traces, with the text of the query's author."""
    text = str(error).strip() or type(error).__name__
    if not hasattr(error, _IS_TRANSLATED):
        text = in_author_words(text, error.getQueryContext() if isinstance(error, PySparkException) else ())
    if (missing := missing_file(text)) is not None:
        return missing
    text = _ABORTED_JOB.sub("", text)
    text = _STACK_TRACE.sub("", text)
    text = _TEMPORARY_FUNCTION.sub(r"\1", text)
    return _QUERY_PLAN.sub(r"\1", text).strip()


def missing_file(text: str) -> str | None:
    """The message for a file that is gone, if this is the text of Spark's error."""
    found = _MISSING_FILE.search(text)
    if found is None:
        return None
    path = re.sub("^file:/+", "/", unquote(found[1]))
    return f"the file {path} is gone, though the snapshot that is read lists it"


@contextmanager
def errors_in_author_words() -> Iterator[None]:
    """Gives the errors of Spark that leave the block the text, the positions and the names of the query's author."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if (missing := missing_file(str(error))) is not None:
            raise NotFoundError(missing) from error
        if isinstance(error, PySparkException) and not hasattr(error, _IS_TRANSLATED):
            for attribute in ("_desc", "_message"):  # of classic Spark, and of Spark Connect
                if isinstance(text := getattr(error, attribute, None), str):
                    setattr(error, attribute, in_author_words(text, error.getQueryContext()))
            setattr(error, _IS_TRANSLATED, True)
        raise
