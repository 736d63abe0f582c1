"""Maps what Spark's errors say about a query back to the text that its author wrote.

Spark gets other names for relations of a lake, and for a row-level change a query that is composed of parts of the
statement. Its errors quote that query and count positions in it. The planner remembers each query that it changes, so
that an error can be shown in the author's words, also if it is only raised when the rows are computed.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

_MAX_QUERIES = 300
_MARGIN = 32
"""An excerpt shows so many characters of the lines before and behind what it marks."""
_CONTEXT = 200
"""So many characters on either side decide which of several places with the same text is meant."""

_EXCERPT = re.compile(r"== SQL[^\n]*? \(line (\d+), position (\d+)\) ==\n")
_MARKS = re.compile(r" *\^*")
_DATAFRAME_CALL = re.compile(r"== DataFrame ==\n[^\n]*\n[^\n]*\n?")
_PARSE_ERROR = re.compile(r" \(line (\d+), pos (\d+)\)\n\n== SQL ==\n")
_PARSE_ERROR_MARK = re.compile(r"-*\^\^\^")
_NEAR = re.compile(r"(?<= near )('[^\n]*?'|end of input)(?=[.:])")
_POSITION = re.compile(r"; line (\d+) pos (\d+)")
_TOKEN = re.compile(r"`[^`]*`|'[^']*'|\w+|[<>=!]+|\S")
_VIEW = re.compile(r"`?\b(_lake_\d+)\b`?( AS `(?:[^`]|``)*`)?")
_SUGGESTIONS = re.compile(r" Did you mean one of the following\? \[(.*?)\]\.")
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_INTERNAL_QUALIFIER = re.compile(r"`_lake_\w+`\.(?=`)")


class Excerpt(NamedTuple):
    """A part of a text."""

    text: str
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The position in the line, from 0."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1)

    def marked(self) -> str:
        """The lines of the part with a line of marks below each, as Spark shows them."""
        line_start = self.text.rfind("\n", 0, self.start) + 1
        line_end = self.text.find("\n", self.end)
        line_end = len(self.text) if line_end < 0 else line_end
        first, last = max(line_start, self.start - _MARGIN), min(line_end, self.end + _MARGIN)
        lines, position = [], first
        for line in self.text[first:last].split("\n"):
            before = max(self.start - position, 0)
            count = max(min(self.end, position + len(line)) - position - before, 0)
            dots = "..." if position == first > line_start else ""
            more = "..." if position + len(line) == last < line_end else ""
            lines += [f"{dots}{line}{more}", f"{' ' * (len(dots) + before)}{'^' * count}" if count else ""]
            position += len(line) + 1
        return "\n".join(lines)


@dataclass(frozen=True)
class SentQuery:
    """A query as Spark gets it, and as its author wrote it."""

    original: str
    edits: Sequence[tuple[int, int, str]]
    """What was replaced in the original: start, end and the new text, in the order of the text."""
    statement: str | None = None
    """The author's statement, if the original is composed of parts of it."""
    thread: int = field(default_factory=threading.get_ident)

    @cached_property
    def text(self) -> str:
        pieces, done = [], 0
        for start, end, new in self.edits:
            pieces += [self.original[done:start], new]
            done = end
        return "".join([*pieces, self.original[done:]])

    def offset(self, line: int, column: int) -> int:
        """The position in the text of a column, from 0, in a line, from 1."""
        start = 0
        for _ in range(line - 1):
            start = self.text.find("\n", start) + 1
            if start == 0:
                return -1
        return start + column

    def author_excerpt(self, start: int, end: int) -> Excerpt | None:
        """What the author wrote for a part of the text; None if it is no text of the author's."""
        first, last = self._original_position(start, False), self._original_position(end, True)
        if self.statement is None:
            return Excerpt(self.original, first, max(first, last))
        part = self.original[first:last]
        found = _find_in_context(part, self.original[:first], self.original[last:], self.statement)
        return None if found is None else Excerpt(self.statement, found, found + len(part))

    def author_excerpt_after(self, position: int) -> Excerpt | None:
        """The next token of the author's text behind a position, where parsing failed."""
        first = self._original_position(position, False)
        if self.statement is not None:
            before = self.original[:first].rstrip()
            ends = (before[-length:] for length in range(min(len(before), _CONTEXT), 0, -1))
            known = next((end for end in ends if end in self.statement), None)
            if known is None:
                return None
            text, first = self.statement, self.statement.index(known) + len(known)
        else:
            text = self.original
        token = _TOKEN.search(text, first)
        return Excerpt(text, token.start(), token.end()) if token else Excerpt(text, len(text), len(text))

    def author_name(self, view: str) -> str | None:
        """What the author wrote in the place of a temporary view."""
        pattern = re.compile(rf"\b{view}\b")
        return next((self.original[start:end] for start, end, new in self.edits if pattern.search(new)), None)

    def _original_position(self, position: int, is_end: bool) -> int:
        """The position in the original; an end in a replaced part is the end of that part, a start its start."""
        shift = 0
        for start, end, new in self.edits:
            new_start = start + shift
            new_end = new_start + len(new)
            if position < new_start or (is_end and position == new_start):
                break
            if position < new_end or (is_end and position == new_end):
                return end if is_end else start
            shift = new_end - end
        return position - shift


def _find_in_context(part: str, before: str, after: str, text: str) -> int | None:
    """Where a part stands in a text: of several places the one with the most similar text around it."""
    if not part.strip():
        return None
    left, right = (r"\b" if re.match(r"\w", c) else "" for c in (part[0], part[-1]))
    before, after = before[-_CONTEXT:][::-1], after[:_CONTEXT]

    def similarity(start: int) -> int:
        text_before, text_after = text[max(start - _CONTEXT, 0) : start][::-1], text[start + len(part) :]
        return _common_length(before, text_before) + _common_length(after, text_after)

    places = [match.start() for match in re.finditer(f"{left}{re.escape(part)}{right}", text)]
    return max(places, key=similarity, default=None)


def _common_length(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


_recent: deque[SentQuery] = deque(maxlen=_MAX_QUERIES)
"""The last queries of this process. The names of their views differ, so it makes no difference whose they are."""


def remember(query: SentQuery) -> None:
    _recent.append(query)


def in_author_words(message: str, contexts: Iterable[Any] = ()) -> str:
    """The message of an error of Spark with the author's text, positions and names.

    `contexts` are the query contexts of the error, which tell where a position in the message belongs.
    """
    newest_first = [*_recent][::-1]
    queries = sorted(newest_first, key=lambda query: query.thread != threading.get_ident())
    message = _DATAFRAME_CALL.sub("", message)
    message = _translate_parse_error(message, queries)
    message = _translate_excerpts(message, queries)
    message = _translate_position(message, queries, contexts)
    return _translate_names(message, queries)


def _translate_excerpts(message: str, queries: Sequence[SentQuery]) -> str:
    """Replaces each part of a query that Spark shows, with the marks below it."""
    pieces, done = [], 0
    for header in _EXCERPT.finditer(message):
        if header.start() < done:
            continue
        shown, marks = _excerpt_lines(message[header.end() :].split("\n"))
        found = _excerpt_in(queries, int(header[1]), int(header[2]) - 1, "\n".join(shown), marks)
        if found is None:
            continue
        query, start, end = found
        excerpt = query.author_excerpt(start, end)
        place = f" (line {excerpt.line}, position {excerpt.column + 1})" if excerpt else ""
        excerpt = excerpt or Excerpt(query.text[start:end], 0, end - start)
        pieces += [message[done : header.start()], f"== SQL{place} ==\n{excerpt.marked()}"]
        done = header.end() + len("\n".join(line for pair in zip(shown, marks, strict=True) for line in pair))
    return "".join([*pieces, message[done:]])


def _excerpt_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of an excerpt, and the lines of marks below them."""
    shown, marks, count = [], [], 0
    for line, mark in zip(lines[::2], lines[1::2], strict=False):
        if not _MARKS.fullmatch(mark):
            break
        shown.append(line)
        marks.append(mark)
        count = len(marks) if "^" in mark else count
    return shown[:count], marks[:count]


def _excerpt_in(
    queries: Iterable[SentQuery], line: int, column: int, shown: str, marks: Sequence[str]
) -> tuple[SentQuery, int, int] | None:
    """The query that an excerpt shows a part of, and where that part begins and ends."""
    if not marks:
        return None
    before = marks[0].find("^")
    lines = shown.split("\n")
    length = sum(len(text) + 1 for text in lines[:-1]) + len(marks[-1]) - before
    for query in queries:
        start = query.offset(line, column)
        for cut_before in (0, 3) if shown.startswith("...") else (0,):
            for cut_after in (0, 3) if shown.endswith("...") else (0,):
                first = start - before + cut_before
                part = shown[cut_before : len(shown) - cut_after]
                if start >= 0 and first >= 0 and query.text.startswith(part, first):
                    return query, start, start + length
    return None


def _translate_parse_error(message: str, queries: Sequence[SentQuery]) -> str:
    """Replaces the whole query that Spark shows for a syntax error, with the mark below the line of the error."""
    header = _PARSE_ERROR.search(message)
    if header is None:
        return message
    lines = message[header.end() :].rstrip("\n").split("\n")
    mark = next((i for i, line in enumerate(lines) if _PARSE_ERROR_MARK.fullmatch(line)), None)
    shown = "\n".join(line for i, line in enumerate(lines) if i != mark)
    query = next((q for q in queries if q.text.rstrip("\n") == shown), None)
    if query is None:
        return message
    excerpt = query.author_excerpt_after(query.offset(int(header[1]), int(header[2])))
    if excerpt is None:
        return message[: header.start()]
    found = excerpt.text[excerpt.start : excerpt.end]
    head, near = message[: header.start()], _NEAR.search(message)
    if near is not None:
        head = head.replace(near[0], f"'{found}'" if found else "end of input")
    author_lines = excerpt.text.split("\n")
    author_lines.insert(excerpt.line, "-" * excerpt.column + "^^^")
    return f"{head} (line {excerpt.line}, pos {excerpt.column})\n\n== SQL ==\n" + "\n".join(author_lines)


def _translate_position(message: str, queries: Sequence[SentQuery], contexts: Iterable[Any]) -> str:
    """Replaces the position `; line 1 pos 7` of an error in the analysis of a query."""
    match = _POSITION.search(message)
    if match is None:
        return message
    offset = int(match[1]), int(match[2])
    for context in contexts:
        try:
            start, end, part = context.startIndex(), context.stopIndex() + 1, context.fragment()
        except Exception:  # a context of the DataFrame API has no position
            continue
        for query in queries:
            if query.text[start:end] == part and query.offset(*offset) == start:
                excerpt = query.author_excerpt(start, end)
                place = f"; line {excerpt.line} pos {excerpt.column}" if excerpt else ""
                return message[: match.start()] + place + message[match.end() :]
    return message


def _translate_names(message: str, queries: Sequence[SentQuery]) -> str:
    """Replaces temporary views by what the author wrote, and leaves internal columns out of suggestions."""
    if "_lake_" not in message:
        return message

    def author_name(match: re.Match[str]) -> str:
        names = (query.author_name(match[1]) for query in queries)
        return next((name for name in names if name is not None), match[0])

    def own_names(match: re.Match[str]) -> str:
        names = _QUOTED_NAME.findall(match[1])
        own = [name for name in names if not name.split(".")[-1].startswith("`_lake_")]
        return f" Did you mean one of the following? [{', '.join(own)}]." if own else ""

    message = _SUGGESTIONS.sub(own_names, message)
    return _INTERNAL_QUALIFIER.sub("", _VIEW.sub(author_name, message))
