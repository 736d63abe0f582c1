"""Links, headings, marks and the site's menu hold together."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from .blocks import BLOCKS, LANGUAGES, PAGES, ROOT

OTHERS = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
MENU = (ROOT / "mkdocs.yml").read_text()
MOST_UNRUN_BLOCKS = 4

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: Counter[str] = Counter()
    names = set()
    for heading in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def links(page: Path) -> list[str]:
    text = _CODE.sub("", re.sub(r"\[`([^`\n]*)`", r"[\1", page.read_text()))
    return [link["target"] for link in _LINK.finditer(text) if not re.match(r"[a-z]+:", link["target"])]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads to no file"
        assert not anchor or anchor in anchors(target), f"{link} leads to no heading"


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent != ROOT], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_the_menu_and_links_stay_in_the_site(page: Path) -> None:
    assert f": {page.relative_to(ROOT / 'docs')}\n" in MENU
    for link in links(page):
        assert (page.parent / link.partition("#")[0]).resolve().is_relative_to(ROOT / "docs"), link


def test_every_block_has_a_language() -> None:
    assert not [block.id for block in BLOCKS if block.language not in LANGUAGES]


def test_a_block_that_is_not_run_has_a_reason_and_is_rare() -> None:
    marked = [block for block in BLOCKS if block.mark == "not run"]
    assert all(block.reason for block in marked)
    assert len(marked) <= MOST_UNRUN_BLOCKS
