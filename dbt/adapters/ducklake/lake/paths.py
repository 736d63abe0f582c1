"""Paths of a lake: from the catalog's text to the storage, and to Spark.

A path in the catalog is absolute or below its parent's: the file's below the table's, the table's
below the schema's, the schema's below the data path. Folders end with '/', so joining is appending.
"""

from __future__ import annotations

import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]*")
_GLOB = re.compile(r"([\\{}\[\]*?])")

# What the catalog calls a store, and the name that Hadoop's connectors answer to.
SPARK_SCHEMES = {"s3": "s3a", "s3n": "s3a", "r2": "s3a", "gcs": "gs"}


def as_folder(path: str) -> str:
    """The path with exactly what makes it a folder: a '/' at its end."""
    return path if path.endswith("/") else path + "/"


def same_folder(path: str, other: str) -> bool:
    """Whether both name one place, in one way of writing or another."""
    return _absolute(as_folder(path)) == _absolute(as_folder(other))


def resolve(base: str, path: str, is_relative: bool) -> str:
    """The whole path of what the catalog keeps below `base`, or elsewhere."""
    return as_folder(base) + path if is_relative and base else path


def relative_to(path: str, base: str) -> tuple[str, bool]:
    """The path as the catalog keeps it: what follows `base`, and whether it is below it at all."""
    base = as_folder(base)
    return (path[len(base) :], True) if path.startswith(base) else (path, False)


def folder_for_name(name: str, uuid_: str) -> str:
    """The folder of a schema or table: its name where that is plain ASCII, else its uuid."""
    return (name if name and _PLAIN_NAME.fullmatch(name) else uuid_) + "/"


def new_uuid7() -> str:
    """A new uuid whose text sorts by the time it was made, to the millisecond."""
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds & (2**48 - 1)) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=number | 0b10 << 62 | secrets.randbits(62)))


def new_file_name() -> str:
    """The name of a new data file."""
    return f"ducklake-{new_uuid7()}.parquet"


def new_delete_file_name() -> str:
    """The name of a new delete file."""
    return f"ducklake-{new_uuid7()}-delete.parquet"


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in lower case; None for a local path."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else None


def filesystem_for(
    data_path: str, options: Mapping[str, str] | None = None
) -> tuple[pafs.FileSystem, Callable[[str], str]]:
    """The file system that holds a lake's files, and what makes a lake's path one of its own.

    `options` are `endpoint`, `region`, `key`, `secret` and `session_token`, for S3; what is left out
    comes from the environment, as it does for the stores that take no options here.
    """
    scheme = scheme_of(data_path)
    if scheme in (None, "file"):
        return pafs.LocalFileSystem(), local_path
    if scheme in ("s3", "s3a", "s3n", "r2"):
        return _s3(dict(options or {})), _below_scheme
    if scheme in ("gs", "gcs"):
        return pafs.GcsFileSystem(), _below_scheme
    if scheme in ("abfs", "abfss", "hdfs", "viewfs"):
        filesystem, _ = pafs.FileSystem.from_uri(data_path)
        return filesystem, _azure_path if scheme.startswith("abfs") else _path_of_url
    raise ValueError(
        f"data_path {data_path!r} is of the scheme {scheme}; known are local paths, file, s3, gs, abfss and hdfs"
    )


def local_path(path: str) -> str:
    """The absolute local path of a lake's path."""
    if path[:5].lower() == "file:":
        # A file URL is taken as DuckDB and Spark take it: as it stands, without decoding any %20.
        path = "/" + path[5:].removeprefix("//localhost/").lstrip("/")
    folder = "/" if path.endswith("/") and path != "/" else ""
    return os.path.abspath(path) + folder


def spark_path(path: str, schemes: Mapping[str, str] = SPARK_SCHEMES) -> str:
    """The one string with which Spark reads this file or folder, and no other."""
    return _GLOB.sub(r"\\\1", spark_target(path, schemes))


def spark_target(path: str, schemes: Mapping[str, str] = SPARK_SCHEMES) -> str:
    """The string with which Spark writes there; a writer takes every character as it is."""
    scheme = scheme_of(path)
    if scheme in (None, "file"):
        return "file://" + local_path(path)
    assert scheme is not None
    return schemes.get(scheme, scheme) + path[len(scheme) :]


def path_of_spark(file_path: str) -> str:
    """The local path or URL that Spark's `_metadata.file_path` speaks of."""
    if scheme_of(file_path) is None and file_path.startswith("file:"):
        file_path = "file://" + file_path[len("file:") :]
    return unquote(file_path)


def _absolute(path: str) -> str:
    return local_path(path) if scheme_of(path) in (None, "file") else spark_target(path)


def _s3(options: dict[str, str]) -> pafs.S3FileSystem:
    endpoint = options.get("endpoint")
    scheme = None
    if endpoint and "://" in endpoint:
        scheme, _, endpoint = endpoint.partition("://")
    arguments = {
        "access_key": options.get("key"),
        "secret_key": options.get("secret"),
        "session_token": options.get("session_token"),
        "region": options.get("region"),
        "endpoint_override": endpoint.rstrip("/") if endpoint else None,
        "scheme": scheme,
    }
    return pafs.S3FileSystem(**{name: value for name, value in arguments.items() if value})


def _below_scheme(path: str) -> str:
    return path.split("://", 1)[-1]


def _path_of_url(path: str) -> str:
    return "/" + _below_scheme(path).partition("/")[2]


def _azure_path(path: str) -> str:
    """abfss://container@account.dfs.core.windows.net/a/b is container/a/b there."""
    container = urlsplit(path).netloc.partition("@")[0]
    return f"{container}/{_below_scheme(path).partition('/')[2]}"
