"""Finding files by path: one file, a folder with all Parquet files below it, or a glob.

In a glob, `*` and `?` stand for characters of one name, `[abc]`, `[a-z]` and `[!a]` for one of several characters,
`{a,b}` for one of several texts, and the name `**` for any number of folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow.fs as pafs

from .errors import LakeError, NotFoundError

_MAGIC = re.compile(r"[*?\[{]")
_OTHER_FORMATS = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}


@dataclass(frozen=True)
class FoundFile:
    """A file in a file system."""

    path: str
    """As the file system names it."""
    size: int


def find_files(filesystem: pafs.FileSystem, path: str, pool: Executor) -> list[FoundFile]:
    """The files of a path of the file system, in order of their paths. Raises if there are none."""
    (info,) = filesystem.get_file_info([path.rstrip("/") or "/"])
    if info.type == pafs.FileType.File:
        return [FoundFile(info.path, info.size)]
    if info.type == pafs.FileType.Directory:
        return _files_of_folder(filesystem, info.path)
    if not _MAGIC.search(path):
        raise NotFoundError(f"there is no file {path}")
    found: dict[str, FoundFile] = {}
    for glob in _alternatives(path):
        found.update({f.path: f for f in _files_of_glob(filesystem, glob, pool)})
    if not found:
        raise NotFoundError(f"no file matches {path}")
    return sorted(found.values(), key=lambda f: f.path)


def _files_of_folder(filesystem: pafs.FileSystem, folder: str) -> list[FoundFile]:
    """The Parquet files below a folder. Names that begin with `_` or `.` are hidden, as for Spark and Hive."""
    base = folder.rstrip("/") + "/"
    found = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True))
    files = []
    for info in found:
        parts = info.path[len(base) :].split("/")
        _refuse_other_formats(folder, parts)
        if info.type == pafs.FileType.File and parts[-1].endswith(".parquet") and not any(map(_is_hidden, parts)):
            files.append(FoundFile(info.path, info.size))
    if not files:
        raise NotFoundError(f"there is no file *.parquet below the folder {folder}")
    return sorted(files, key=lambda f: f.path)


def _refuse_other_formats(folder: str, parts: Sequence[str]) -> None:
    kind = next((_OTHER_FORMATS[part] for part in parts if part in _OTHER_FORMATS), None)
    if kind is None and parts[-2:-1] == ["metadata"] and parts[-1].endswith(".metadata.json"):
        kind = "an Iceberg table"
    if kind is not None:
        raise LakeError(
            f"{folder} has the files of {kind}, of which some may no longer be part of it;"
            " name the files of its current version instead of the folder"
        )


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _files_of_glob(filesystem: pafs.FileSystem, glob: str, pool: Executor) -> list[FoundFile]:
    """The files that a glob without braces matches. Only folders that can match are listed."""
    names = glob.split("/")
    plain = next((i for i, name in enumerate(names) if _MAGIC.search(name)), len(names) - 1)
    folders = ["/".join(names[:plain]) or ("/" if glob.startswith("/") else "")]
    for depth, name in enumerate(names[plain:], start=plain):
        is_last = depth == len(names) - 1
        if name == "**":
            return _matching_below(filesystem, folders, re.compile(_path_pattern(names[depth:])), pool)
        pattern = re.compile(_name_pattern(name))
        listed = [
            info
            for infos in pool.map(lambda folder: _list(filesystem, folder), folders)
            for info in infos
            if pattern.fullmatch(info.base_name)
        ]
        if is_last:
            return [FoundFile(f.path, f.size) for f in listed if f.type == pafs.FileType.File]
        folders = [f.path for f in listed if f.type == pafs.FileType.Directory]
    return []


def _matching_below(
    filesystem: pafs.FileSystem, folders: Iterable[str], pattern: re.Pattern[str], pool: Executor
) -> list[FoundFile]:
    """The files at any depth below folders whose path there matches a pattern."""

    def search(folder: str) -> list[FoundFile]:
        base = folder.rstrip("/") + "/" if folder else ""
        return [
            FoundFile(info.path, info.size)
            for info in _list(filesystem, folder, recursive=True)
            if info.type == pafs.FileType.File and pattern.fullmatch(info.path[len(base) :])
        ]

    return [file for files in pool.map(search, folders) for file in files]


def _list(filesystem: pafs.FileSystem, folder: str, recursive: bool = False) -> list[pafs.FileInfo]:
    found: list[pafs.FileInfo] = filesystem.get_file_info(
        pafs.FileSelector(folder, recursive=recursive, allow_not_found=True)
    )
    return found


def _path_pattern(names: Sequence[str]) -> str:
    """The regular expression of a glob for several names."""
    folders = "".join("(?:[^/]+/)*" if name == "**" else _name_pattern(name) + "/" for name in names[:-1])
    return folders + ("(?:[^/]+/)*[^/]+" if names[-1] == "**" else _name_pattern(names[-1]))


def _name_pattern(name: str) -> str:
    """The regular expression of a glob for one name."""
    result, at = "", 0
    while at < len(name):
        end = name.find("]", at + 2) if name[at] == "[" else -1
        if end > 0:
            chosen = name[at + 1 : end]
            negated = chosen[0] in "!^"
            members = re.sub(r"([\\\]\[^&|~])", r"\\\1", chosen[negated:])
            result += f"[{'^/' if negated else ''}{members}]"
            at = end + 1
            continue
        result += {"*": "[^/]*", "?": "[^/]"}.get(name[at]) or re.escape(name[at])
        at += 1
    return result


def _alternatives(glob: str) -> list[str]:
    """The globs without braces that a glob with braces stands for."""
    match = re.search(r"\{([^{}]*)\}", glob)
    if not match:
        return [glob]
    return [
        other
        for choice in match[1].split(",")
        for other in _alternatives(glob[: match.start()] + choice + glob[match.end() :])
    ]
