"""What a node is made by: its code, its settings and its macros."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..spark.session import LakeSession
from ..spark.sql.repeatability import called_functions, normalized, unrepeatable_function
from .settings import DETERMINISTIC

_IRRELEVANT_SETTINGS = frozenset(
    [
        "access",
        "commit_author",
        "commit_extra_info",
        "commit_message",
        "docs",
        "enabled",
        "freshness",
        "full_refresh",
        "grants",
        "group",
        "maintenance",
        "meta",
        "reuse",
        "tags",
    ]
)
_INTERNAL_PACKAGES = frozenset(("dbt", "dbt_spark", "dbt_ducklake"))
_TEXT = r"'(?:[^'\\]|\\.)*'"
_RANGE = re.compile(
    rf"(ducklake_new_changes \( {_TEXT}) , \w+ , \w+ , consumer => {_TEXT} , asked_at => \d+ \)", re.IGNORECASE
)
_TEMPORARY = ("__dbt_tmp", "_dbt_", "_lake_")
"""What is in the names of temporary views: of dbt, of the adapter, of the engine."""


@dataclass(frozen=True)
class Recipe:
    """What a node is made by, besides what it reads."""

    fingerprint: str
    """Of the code as dbt compiled it, the settings and the macros."""
    source: str
    """The same with the code as it is written, by which `ducklake_plan` compares."""
    sql: str | None
    """The compiled code, unless it is Python."""
    is_trusted: bool
    """Whether the author says that it makes the same of the same inputs."""
    fetches_rows: bool
    """Whether rows that were fetched while it was compiled are in the code."""

    def unrepeatable(self, session: LakeSession, outside: frozenset[str]) -> str | None:
        """Why it may make something else of the same inputs. `outside` is what it read that is in no lake."""
        if self.is_trusted:
            return None
        if self.fetches_rows:
            return "its code has rows in it that it fetched (run_query)"
        if self.sql is not None:
            if (function := unrepeatable_function(self.sql)) is not None:
                return f"it calls {function}"
            if session.spark_started:
                for name in called_functions(self.sql):
                    is_known = name.startswith("ducklake_") or session.is_known_function(name)
                    if not is_known and name.upper() not in _ctes(self.sql):
                        return f"it calls {name}, which is no function of Spark's"
        read = sorted(name for name in outside if not any(mark in name for mark in _TEMPORARY))
        return f"it reads {read[0]}, which is in no lake" if read else None


class Recipes:
    """The recipes of a project's nodes. Threads share it."""

    def __init__(self, config: Any, manifest: Callable[[], Any]) -> None:
        self._config = config
        self._manifest = manifest
        self._lock = threading.Lock()

    def of(self, node: Any, code: str | None, fetches_rows: bool) -> Recipe:
        """The recipe of a node that dbt has compiled."""
        return Recipe(
            self._fingerprint(node, code),
            self.source(node),
            code if getattr(node, "language", "sql") == "sql" else None,
            node.config.get("reuse") == DETERMINISTIC,
            fetches_rows,
        )

    def source(self, node: Any) -> str:
        """The fingerprint of a node that may not be compiled."""
        return self._fingerprint(node, getattr(node, "raw_code", None))

    def _fingerprint(self, node: Any, code: str | None) -> str:
        config = node.config.to_dict(omit_none=True) if hasattr(node.config, "to_dict") else dict(node.config)
        persists_docs = config.get("persist_docs") or {}
        is_seed = str(node.resource_type) == "seed"
        parts = {
            "code": _seed_digest(node) if is_seed else _without_ranges(normalized(code or "")),
            "config": {key: value for key, value in config.items() if key not in _IRRELEVANT_SETTINGS},
            "columns": {
                name: [
                    getattr(column, "data_type", None),
                    str(getattr(column, "constraints", None)),
                    column.description if persists_docs.get("columns") else None,
                ]
                for name, column in (getattr(node, "columns", None) or {}).items()
            },
            "description": node.description if persists_docs.get("relation") else None,
            "macros": self._macros_of(node),
            "rows": [
                str(getattr(getattr(self._config, "args", None), flag, None) or "") for flag in ("empty", "sample")
            ],
            "spark": (self._config.credentials.spark or {}).get("config"),
            "versions": [version("dbt-core"), version("dbt-ducklake")],
        }
        return digest(json.dumps(parts, sort_keys=True, default=str))

    @cached_property
    def _macros(self) -> tuple[Mapping[str, Any], str]:
        """The project's macros by id, and a digest of those that take the place of dbt's or the adapter's."""
        macros = getattr(self._manifest(), "macros", {})
        internal = {m.name for m in macros.values() if m.package_name in _INTERNAL_PACKAGES}
        own = {key: m for key, m in macros.items() if m.package_name not in _INTERNAL_PACKAGES}
        overrides = sorted(
            m.macro_sql
            for m in own.values()
            if m.name in internal or m.name.startswith(("materialization_", "ducklake__"))
        )
        return own, digest("".join(overrides))

    def _macros_of(self, node: Any) -> list[str]:
        """Digests of the project's macros that a node calls, also through others."""
        with self._lock:
            own, overrides = self._macros
        todo, seen = list(getattr(getattr(node, "depends_on", None), "macros", ())), set()
        while todo:
            macro_id = todo.pop()
            if macro_id in own and macro_id not in seen:
                seen.add(macro_id)
                todo += own[macro_id].depends_on.macros
        return [overrides, *(digest(own[i].macro_sql) for i in sorted(seen))]


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ctes(code: str) -> frozenset[str]:
    """The words of a query that begin a CTE with a list of columns: `with a (x) as (...)`."""
    words = normalized(code).upper().split()
    return frozenset(
        word for word, before in zip(words[1:], words, strict=False) if before in ("WITH", ",", "RECURSIVE")
    )


def _without_ranges(code: str) -> str:
    """Code without the range of changes that `ducklake_new_changes` has in it, which the node's inputs tell."""
    return _RANGE.sub(r"\1 )", code)


def _seed_digest(seed: Any) -> str:
    """The checksum of a seed's file: dbt's own, unless the file is so large that dbt takes its path instead."""
    checksum = seed.checksum
    if checksum.name != "path":
        return str(checksum.checksum)
    with (Path(seed.root_path or ".") / seed.original_file_path).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
