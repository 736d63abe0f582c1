"""The code blocks of the documentation, with what a reader is told about each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

LANGUAGES = ("console", "python", "sh", "sql", "text", "yaml")
"""The languages of blocks. `text` is for output, errors and listings."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (?P<kind>[a-zA-Z ]+?)(?:: (?P<value>.+?))? -->\s*\Z", re.DOTALL)
_FILE = re.compile(r"\A(?:--|#) (?P<path>[\w/-]+\.\w+)\n")
_END_OF_STATEMENT = re.compile(r";[ \t]*(?:--[^\n]*)?(?:\n|\Z)")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str
    mark: str | None
    """The comment before the block: `not run`, or `syntax` for the alternatives of a statement."""
    reason: str | None

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def name(self) -> str:
        """A name for a file or a relation made of the block."""
        return re.sub(r"\W+", "_", self.id.removesuffix(".md").replace(".md", "")).lower()

    @property
    def file(self) -> str | None:
        """The path in the first line's comment, such as `-- models/orders.sql`."""
        found = _FILE.match(self.text)
        return found["path"] if found else None

    @property
    def is_duckdb(self) -> bool:
        return self.page == "docs/duckdb.md" or self.text.startswith("-- in DuckDB\n")

    @property
    def models(self) -> list[str]:
        """The texts in the block that dbt renders."""
        return [part for part in self._parts() if "{{" in part]

    @property
    def statements(self) -> str:
        """The SQL of the block without the texts that dbt renders."""
        return ";\n".join(part for part in self._parts() if "{{" not in part)

    def _parts(self) -> list[str]:
        return [part for part in _END_OF_STATEMENT.split(self.text) if _without_comments(part).strip()]


def _without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


def _blocks_of(path: Path) -> Iterator[Block]:
    content = path.read_text()
    page = str(path.relative_to(ROOT))
    for found in _FENCE.finditer(content):
        comment = _COMMENT.search(content[: found.start()])
        yield Block(
            page,
            content.count("\n", 0, found.start()) + 1,
            found["language"],
            re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            comment["kind"] if comment else None,
            comment["value"] if comment else None,
        )


BLOCKS = [block for page in PAGES for block in _blocks_of(page)]


def run_blocks(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and block.mark != "not run"]


def variants(syntax: str) -> list[str]:
    """The statements that a syntax stands for: each option `[...]` and each alternative `a|b` in one of them."""
    choices = re.split(r"(\[[^\[\]]+\]|\w+(?:\|\w+)+)", syntax)
    plain = [_alternatives(part)[0] for part in choices]
    found = ["".join(plain)]
    for index, part in enumerate(choices):
        for alternative in _alternatives(part)[1:]:
            found.append("".join([*plain[:index], alternative, *plain[index + 1 :]]))
    return found


def _alternatives(part: str) -> list[str]:
    if part.startswith("["):
        return ["", *(alternative for alternative in part[1:-1].split("|"))]
    return part.split("|") if re.fullmatch(r"\w+(\|\w+)+", part) else [part]
