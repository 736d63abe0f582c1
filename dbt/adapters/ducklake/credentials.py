"""The fields of a profile: types, validation, and what may be shown of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from .lake.databases.connection_string import parse_catalog
from .lake.errors import LakeError
from .lake.format_versions import WRITABLE_VERSIONS
from .lake.retry import Retry
from .maintenance import MaintenanceSettings
from .spark.engine.keep_alive import parse_duration
from .spark.session import LakeSession


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_duration(value: Any) -> bool:
    try:
        parse_duration(value)
    except LakeError:
        return False
    return True


def _is_maintenance(value: Any) -> bool:
    try:
        MaintenanceSettings.parse(value)
    except CompilationError as error:
        raise DbtRuntimeError(f"the field {error.msg}") from error
    return True


@dataclass(frozen=True)
class _Rule:
    """What a field accepts. An error never shows the value of a secret field."""

    check: Callable[[Any], bool]
    expected: str
    secret: bool = False


PUBLISH = ("node", "run")
PUBLISH_ON_FAILURE = ("nothing", "passed")

_NAME = _Rule(_is_text, "a name")
_FLAG = _Rule(_is_bool, "true or false")
_FIELDS: Mapping[str, _Rule] = {
    "catalog": _Rule(_is_text, "a catalog such as sqlite:lake/metadata.sqlite or postgres:dbname=lake", secret=True),
    "data_path": _Rule(_is_text, "a folder or the URL of one"),
    "database": _NAME,
    "schema": _NAME,
    "author": _NAME,
    "metadata_schema": _NAME,
    "read_only": _FLAG,
    "create_if_not_exists": _FLAG,
    "data_inlining_row_limit": _Rule(_is_count, "a number of rows"),
    "format_version": _Rule(lambda v: v in WRITABLE_VERSIONS, f"one of {WRITABLE_VERSIONS}, in quotes"),
    "encrypted": _FLAG,
    "retry": _Rule(_is_mapping, "the fields max_count, wait_ms and backoff"),
    "spark": _Rule(_is_mapping, "the fields master or remote, config and keep_alive"),
    "storage": _Rule(_is_mapping, "the fields endpoint, region, key, secret and session_token", secret=True),
    "publish": _Rule(lambda v: v in PUBLISH, "node or run"),
    "publish_on_failure": _Rule(lambda v: v in PUBLISH_ON_FAILURE, "nothing or passed"),
    "maintenance": _Rule(_is_maintenance, "auto, off, or limits such as small_files"),
    "attach": _Rule(lambda v: isinstance(v, list), "a list of lakes, each with name and catalog", secret=True),
}
_RETRY: Mapping[str, _Rule] = {
    "max_count": _Rule(_is_count, "a number of tries"),
    "wait_ms": _Rule(_is_number, "a number of milliseconds"),
    "backoff": _Rule(_is_number, "a factor"),
}
_SPARK: Mapping[str, _Rule] = {
    "master": _Rule(_is_text, "a master such as local[*] or spark://host:7077"),
    "remote": _Rule(_is_text, "an address such as sc://host:15002", secret=True),  # it may carry a token
    "config": _Rule(_is_mapping, "settings such as spark.driver.memory: 4g", secret=True),
    "keep_alive": _Rule(_is_duration, "a time such as 90s, 30m or 2h"),
}
_STORAGE: Mapping[str, _Rule] = {
    name: _Rule(_is_scalar, "a text", secret=True) for name in ("endpoint", "region", "key", "secret", "session_token")
}
_ATTACH: Mapping[str, _Rule] = {
    **{
        name: _FIELDS[name]
        for name in (
            "catalog",
            "data_path",
            "metadata_schema",
            "read_only",
            "create_if_not_exists",
            "format_version",
            "encrypted",
        )
    },
    "name": _NAME,
    "snapshot_version": _Rule(_is_count, "the number of a snapshot"),
    "snapshot_time": _Rule(lambda v: v is not None, "a moment such as 2026-01-31 12:00:00"),
}
_FIELDS_OF_DBT = {"type", "threads"}


def _check_fields(values: Mapping[str, Any], rules: Mapping[str, _Rule], where: str = "") -> None:
    for name, value in values.items():
        rule = rules.get(name)
        if rule is None:
            raise DbtRuntimeError(f"the field {where}{name} is not known; known are {', '.join(rules)}")
        if value is not None and not rule.check(value):
            found = f"something else (of type {type(value).__name__})" if rule.secret else repr(value)
            raise DbtRuntimeError(f"the field {where}{name} takes {rule.expected}, and it is {found}")


@dataclass
class DucklakeCredentials(Credentials):
    """How a target reaches its lake. `repr` and `connection_info` show no field that may hold a secret."""

    database: str = "lake"
    schema: str = "main"
    catalog: str = field(default="", repr=False)
    data_path: str | None = None
    author: str | None = None
    metadata_schema: str | None = None
    read_only: bool = False
    create_if_not_exists: bool = True
    data_inlining_row_limit: int | None = None
    format_version: str | None = None
    encrypted: bool = False
    retry: dict[str, Any] | None = None
    spark: dict[str, Any] | None = field(default=None, repr=False)
    storage: dict[str, Any] | None = field(default=None, repr=False)
    publish: str = "node"
    publish_on_failure: str = "nothing"
    maintenance: bool | str | dict[str, Any] | None = None
    attach: list[dict[str, Any]] | None = field(default=None, repr=False)

    @classmethod
    def validate(cls, data: Any) -> None:
        """Raises for the first invalid field; dbt adds the profile and the target to the error."""
        fields = {k: v for k, v in data.items() if k not in _FIELDS_OF_DBT}
        _check_fields(fields, _FIELDS)
        if not fields.get("catalog"):
            raise DbtRuntimeError(f"the field catalog is missing; it takes {_FIELDS['catalog'].expected}")
        _check_fields(fields.get("retry") or {}, _RETRY, "retry.")
        spark = fields.get("spark") or {}
        _check_fields(spark, _SPARK, "spark.")
        if spark.get("master") and spark.get("remote"):
            raise DbtRuntimeError("the fields spark.master and spark.remote exclude each other: give the one you mean")
        if spark.get("keep_alive") and spark.get("remote"):
            raise DbtRuntimeError("the field spark.keep_alive keeps a local Spark; leave it or spark.remote out")
        _check_fields(fields.get("storage") or {}, _STORAGE, "storage.")
        for index, lake in enumerate(fields.get("attach") or []):
            where = f"attach[{index}]"
            if not isinstance(lake, Mapping):
                raise DbtRuntimeError(f"the field {where} takes a lake with name and catalog")
            for name in ("name", "catalog"):
                if not lake.get(name):
                    raise DbtRuntimeError(f"the field {where}.{name} is missing; it takes {_ATTACH[name].expected}")
            _check_fields(lake, _ATTACH, f"{where}.")
            _check_catalog(f"{where}.catalog", lake["catalog"])
        _check_catalog("catalog", fields["catalog"])
        super().validate(data)

    @property
    def type(self) -> str:
        return "ducklake"

    @property
    def unique_field(self) -> str:
        return self.location

    @property
    def location(self) -> str:
        """Where the catalog database is, without secrets."""
        return parse_catalog(self.catalog).location

    def _connection_keys(self) -> tuple[str, ...]:
        return ("catalog", "data_path", "database", "schema", "author", "metadata_schema", "read_only", "spark_master")

    def connection_info(self, *, with_aliases: bool = False) -> list[tuple[str, Any]]:
        """The fields that `dbt debug` shows and that `target` has in Jinja."""
        spark = self.spark or {}
        shown = {
            **{key: getattr(self, key, None) for key in self._connection_keys()},
            "catalog": self.location,
            "spark_master": "Spark Connect" if spark.get("remote") else spark.get("master", "local[*]"),
        }
        return [(key, value) for key, value in shown.items() if with_aliases or value is not None]

    def lake_session(self) -> LakeSession:
        return LakeSession(
            self.catalog,
            self.data_path,
            spark=self.spark or {},
            database=self.database,
            schema=self.schema,
            author=self.author,
            metadata_schema=self.metadata_schema,
            read_only=self.read_only,
            create_if_not_exists=self.create_if_not_exists,
            data_inlining_row_limit=self.data_inlining_row_limit,
            format_version=self.format_version,
            encrypted=self.encrypted,
            retry=Retry(**(self.retry or {})),
            storage={k: str(v) for k, v in (self.storage or {}).items()} or None,
            attach=self.attach or (),
        )


def _check_catalog(field_name: str, catalog: str) -> None:
    try:
        parse_catalog(catalog)
    except LakeError as error:
        raise DbtRuntimeError(f"the field {field_name} is wrong: {error}") from error
