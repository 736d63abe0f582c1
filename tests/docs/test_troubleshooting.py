"""Every error that the documentation quotes is an error that the code raises."""

from __future__ import annotations

import ast
import re

import pytest

from .blocks import BLOCKS, ROOT, Block

MINIMUM_TEXT = 20
"""A message that has fewer letters of its own between the values would fit nearly any text."""

ERRORS = [b for b in BLOCKS if b.page == "docs/troubleshooting.md" and b.language == "text"]


def _patterns(source: str) -> list[re.Pattern[str]]:
    """The strings of a module as patterns, where a value may be anything."""
    tree = ast.parse(source)
    pieces = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in set(ast.walk(tree)) - pieces:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
        if any(isinstance(text, str) and len(text) > 1 for text in texts):
            words = "".join(text for text in texts if isinstance(text, str))
            if len(re.sub(r"\W", "", words)) >= MINIMUM_TEXT:
                pattern = "(?s:.*)".join(_words(t) if isinstance(t, str) else "" for t in texts)
                # What may be anything at either end is needed by no search, and makes it slow.
                found.append(re.compile(pattern.removeprefix("(?s:.*)").removesuffix("(?s:.*)")))
    return found


def _words(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


@pytest.fixture(scope="module")
def messages() -> list[re.Pattern[str]]:
    return [p for file in (ROOT / "dbt").rglob("*.py") for p in _patterns(file.read_text())]


@pytest.mark.parametrize("block", [b for b in ERRORS if b.mark != "from spark"], ids=lambda block: block.id)
def test_a_quoted_error_is_raised_somewhere(block: Block, messages: list[re.Pattern[str]]) -> None:
    assert any(message.search(block.text) for message in messages), block.text


def test_a_text_that_is_no_error_matches_nothing(messages: list[re.Pattern[str]]) -> None:
    assert not any(message.search("the table orders is fine and its columns are all there") for message in messages)
