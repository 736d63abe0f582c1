"""The pages of docs/reference are what the code says now."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from .blocks import ROOT

SCRIPT = ROOT / "docs" / "generate_reference.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(script: ModuleType) -> None:
    for name, make in script.PAGES.items():
        written = (ROOT / "docs" / "reference" / name).read_text()
        assert written == make(), f"docs/reference/{name} differs from the code: run `make reference`"


def test_there_are_no_other_pages(script: ModuleType) -> None:
    assert {path.name for path in (ROOT / "docs" / "reference").iterdir()} == set(script.PAGES)


def test_a_setting_without_a_text_is_an_error(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="describes no option new_option"):
        script.described([*script.OPTIONS, "new_option"], script.OPTION_TEXTS, "option")


def test_a_text_without_a_setting_is_an_error(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="describes the option old_option, which does not exist"):
        script.described(script.OPTIONS, {**script.OPTION_TEXTS, "old_option": ""}, "option")
