"""Paths of a lake: in the catalog, in the file system, and for Spark.

A path in the catalog is absolute, or relative to its parent: a file to its table, a table to its schema, a schema to
the data path. Folders end with '/', so that appending joins paths.
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
_DATA_FILE_NAME = re.compile(r"(^|/)ducklake-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/|\.parquet$)")
_GLOB = re.compile(r"([\\{}\[\]*?])")

SPARK_SCHEMES = {"s3": "s3a", "s3n": "s3a", "r2": "s3a", "gcs": "gs"}
"""URL schemes in the catalog, and those of the Hadoop connectors for them."""


def as_folder(path: str) -> str:
    """The path with a '/' at its end."""
    return path if path.endswith("/") else path + "/"


def same_folder(path: str, other: str) -> bool:
    """Whether both paths name the same folder, even if one is relative or has another name of the scheme."""
    return _absolute(as_folder(path)) == _absolute(as_folder(other))


def resolve(base: str, path: str, is_relative: bool) -> str:
    """The complete path for a path in the catalog. `base` is the path of its parent."""
    return as_folder(base) + path if is_relative and base else path


def relative_to(path: str, base: str) -> tuple[str, bool]:
    """The path for the catalog and whether it is relative. It is if it starts with `base`."""
    base = as_folder(base)
    return (path[len(base) :], True) if path.startswith(base) else (path, False)


def folder_for_name(name: str, uuid_: str) -> str:
    """The folder of a new schema or table: its name if that is plain ASCII, otherwise its uuid."""
    return (name if name and _PLAIN_NAME.fullmatch(name) else uuid_) + "/"


def new_uuid7() -> str:
    """A new UUID of version 7, which sorts by its time of creation in milliseconds."""
    milliseconds = time.time_ns() // 1_000_000
    number = (milliseconds & (2**48 - 1)) << 80 | 7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=number | 0b10 << 62 | secrets.randbits(62)))


def new_data_file_name() -> str:
    return f"ducklake-{new_uuid7()}.parquet"


def has_data_file_name(path: str) -> bool:
    """Whether a writer of DuckLake named the file, or the folder that Spark wrote it into."""
    return _DATA_FILE_NAME.search(path) is not None


def new_delete_file_name(extension: str = "parquet") -> str:
    return f"ducklake-{new_uuid7()}{delete_file_end(extension)}"


def delete_file_end(extension: str = "parquet") -> str:
    """The end of the name of a delete file."""
    return f"-delete.{extension}"


def scheme_of(path: str) -> str | None:
    """The scheme of a URL in lower case; None for a local path."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else None


def filesystem_for(
    data_path: str, options: Mapping[str, str] | None = None
) -> tuple[pafs.FileSystem, Callable[[str], str]]:
    """The file system of a lake's files, and a function that maps a path of the lake to a path of the file system.

    The options for S3 are `endpoint`, `region`, `key`, `secret` and `session_token`. Those that are missing come from
    the environment. Other stores take everything from there.
    """
    scheme = scheme_of(data_path)
    if scheme in (None, "file"):
        return pafs.LocalFileSystem(), local_path
    if scheme in ("s3", "s3a", "s3n", "r2"):
        return _s3(dict(options or {})), _without_scheme
    if scheme in ("gs", "gcs"):
        return pafs.GcsFileSystem(), _without_scheme
    if scheme in ("abfs", "abfss", "hdfs", "viewfs"):
        filesystem, _ = pafs.FileSystem.from_uri(data_path)
        return filesystem, _azure_path if scheme.startswith("abfs") else _path_of_url
    raise ValueError(
        f"data_path {data_path!r} is of the scheme {scheme}; known are local paths, file, s3, gs, abfss and hdfs"
    )


def local_path(path: str) -> str:
    """The absolute local path for a path or `file:` URL."""
    if path[:5].lower() == "file:":
        # Like DuckDB and Spark, this does not decode %20 and the like in a file URL.
        path = "/" + path[5:].removeprefix("//localhost/").lstrip("/")
    folder = "/" if path.endswith("/") and path != "/" else ""
    return os.path.abspath(path) + folder


def without_globs(path: str) -> str:
    """The path for Spark's readers of paths, which take some characters for globs."""
    return _GLOB.sub(r"\\\1", path)


def spark_path(path: str, schemes: Mapping[str, str] = SPARK_SCHEMES) -> str:
    """The path of this file or folder in Spark."""
    scheme = scheme_of(path)
    if scheme in (None, "file"):
        return "file://" + local_path(path)
    assert scheme is not None
    return schemes.get(scheme, scheme) + path[len(scheme) :]


def storage_root(path: str) -> str:
    """Where the paths of a store begin: `s3://bucket/`, or `/` for local paths."""
    if scheme_of(path) in (None, "file"):
        return "/"
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/"


def is_in_same_store(path: str, other: str) -> bool:
    """Whether one file system reads both paths. All buckets of S3 are one store, and all local folders."""
    return _store(path) == _store(other)


def _store(path: str) -> tuple[str, str]:
    scheme = scheme_of(path) or "file"
    place = _without_scheme(storage_root(path)).rstrip("/")
    if scheme in ("abfs", "abfss"):
        return "abfs", place.partition("@")[2]
    if scheme in ("hdfs", "viewfs"):
        return scheme, place
    return SPARK_SCHEMES.get(scheme, scheme), ""


def other_names(path: str) -> list[str]:
    """Other texts under which catalogs may name the same file."""
    scheme = scheme_of(path)
    if scheme is None:
        return [f"file://{path}"]
    hadoop_scheme = SPARK_SCHEMES.get(scheme, scheme)
    family = {hadoop_scheme, *(s for s, hadoop in SPARK_SCHEMES.items() if hadoop == hadoop_scheme)}
    return [name + path[len(scheme) :] for name in sorted(family - {scheme})]


def path_from_spark(file_path: str) -> str:
    """The path or URL of a file, from Spark's `_metadata.file_path`."""
    if scheme_of(file_path) is None and file_path.startswith("file:"):
        file_path = "file://" + file_path[len("file:") :]
    return unquote(file_path)


def _absolute(path: str) -> str:
    return local_path(path) if scheme_of(path) in (None, "file") else spark_path(path)


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
    # Without delay, a new file is begun as a multipart upload, which takes three requests.
    return pafs.S3FileSystem(allow_delayed_open=True, **{name: value for name, value in arguments.items() if value})


def _without_scheme(path: str) -> str:
    return path.split("://", 1)[-1]


def _path_of_url(path: str) -> str:
    return "/" + _without_scheme(path).partition("/")[2]


def _azure_path(path: str) -> str:
    """abfss://container@account.dfs.core.windows.net/a/b becomes container/a/b."""
    container = urlsplit(path).netloc.partition("@")[0]
    return f"{container}/{_without_scheme(path).partition('/')[2]}"
