"""That every class of the official suite runs here, or has a reason not to."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import dbt.tests.adapter

from .not_here import NEVER, PARTS

_SUITE = "dbt.tests.adapter."


def _classes(module: ModuleType) -> Iterator[type]:
    return (c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__)


def _tests(of: type) -> set[str]:
    return {name for name in dir(of) if name.startswith("test") and callable(getattr(of, name))}


def _is_suite(of: type) -> bool:
    return of.__module__.startswith(_SUITE)


def _name(of: type) -> str:
    return f"{of.__module__.removeprefix(_SUITE)}.{of.__name__}"


@cache
def _suite() -> dict[str, type]:
    """The classes of the suite that have tests, without those that others of the suite derive from."""
    (root,) = map(Path, dbt.tests.adapter.__path__)
    classes: set[type] = set()
    for file in root.rglob("*.py"):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[-1] != "__init__":
            classes.update(_classes(importlib.import_module(_SUITE + ".".join(parts))))
    parents = {base for c in classes for base in c.__mro__[1:]}
    return {_name(c): c for c in classes - parents if _tests(c)}


@cache
def _ours() -> tuple[type, ...]:
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    modules = [importlib.import_module(f"{__package__}.{f.stem}") for f in files if f != Path(__file__)]
    return tuple(c for module in modules for c in _classes(module) if c.__name__.startswith("Test"))


@cache
def _used() -> frozenset[type]:
    """The suite's classes that ours stand on, without the bases of those."""
    used = set()
    for ours in _ours():
        of_suite = [c for c in ours.__mro__ if _is_suite(c)]
        used.update(c for c in of_suite if not any(c in other.__mro__[1:] for other in of_suite))
    return frozenset(used)


def _same(of: type) -> Iterator[type]:
    """A class of the suite, and what it is another name for."""
    yield of
    own = {name for name in vars(of) if not name.startswith("__")}
    if not own and len(of.__bases__) == 1 and _is_suite(of.__bases__[0]):
        yield from _same(of.__bases__[0])


def _runs(of: type) -> bool:
    return any(c in _used() for c in _same(of))


def _skips(of: type) -> Iterator[tuple[str, str]]:
    """The tests of a class that are skipped, each as the name in `PARTS` and the reason that it gives."""
    marks = [*getattr(of, "pytestmark", [])]
    assert not [m for m in marks if m.name.startswith("skip")], f"{of.__name__} is skipped as a whole"
    for name in _tests(of):
        test = getattr(of, name)
        for mark in getattr(test, "pytestmark", []):
            if mark.name in ("skip", "skipif", "xfail"):
                yield getattr(test, "left_out", f"{of.__name__}.{name}"), mark.kwargs.get("reason", "")


def test_every_class_runs_or_has_a_reason() -> None:
    missing = [name for name, c in _suite().items() if not _runs(c) and name not in NEVER]
    assert sorted(missing) == []


def test_no_class_is_listed_without_need() -> None:
    assert [name for name in NEVER if name not in _suite()] == []
    assert [name for name in NEVER if _runs(_suite()[name])] == []


def test_every_skipped_test_is_listed_and_no_other() -> None:
    skipped = [(ours, *skip) for ours in _ours() for skip in _skips(ours)]
    assert [(name, reason) for _, name, reason in skipped if PARTS.get(name) != reason] == []
    assert sorted({name for _, name, _ in skipped}) == sorted(PARTS)
    for ours, name, _ in skipped:
        of_suite, _, test = name.rpartition(".")
        assert any(_is_suite(c) and _name(c) == of_suite and test in vars(c) for c in ours.__mro__), name
        assert getattr(vars(ours)[test], "left_out", test) in (name, test)


def test_our_classes_stand_on_the_suite() -> None:
    assert [c.__name__ for c in _ours() if not any(map(_is_suite, c.__mro__))] == []
