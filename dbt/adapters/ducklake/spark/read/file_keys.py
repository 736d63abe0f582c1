"""File keys: what tells the data files of a scan apart in Spark."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...lake.paths import spark_path

_PLAIN_KEY = re.compile(r"[A-Za-z0-9._=/-]+")


@dataclass(frozen=True)
class FileKeys:
    """The key of a file is the shortest end of its path that no other file of the scan has.

    Mostly that is the file name, which Spark has at hand for each row. Files that were added to a table may have the
    same name in different folders, such as `data_0.parquet` in folders of Hive. Then some folders belong to the key.
    """

    depth: int
    """The number of folders and file names at the end of a path that are its key."""
    is_plain: bool
    """Whether Spark's URL encoding leaves all keys as they are."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> FileKeys:
        every = list(paths)
        depth, keys = 1, {base_name(path) for path in every}
        if len(keys) < len(every):
            urls = {_url(path) for path in every}
            longest = max(url.count("/") for url in urls) + 1
            while len(keys) < len(urls) and depth < longest:
                depth += 1
                keys = {_end(url, depth) for url in urls}
        return cls(depth, all(map(_PLAIN_KEY.fullmatch, keys)))

    def key(self, path: str) -> str:
        return base_name(path) if self.depth == 1 else _end(_url(path), self.depth)

    def sql(self) -> str:
        """The SQL for the key of a row's file."""
        end_of_path = f"substring_index(_metadata.file_path, '/', {-self.depth})"
        key = "_metadata.file_name" if self.depth == 1 else end_of_path
        return key if self.is_plain else url_decoded_sql(key)


def base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def url_decoded_sql(text: str) -> str:
    """The SQL for the decoded text of a URL path, in which a plus is a plus and no space."""
    return f"url_decode(replace({text}, '+', '%2B'))"


def _url(path: str) -> str:
    """The URL of a file as Spark reports it, but not encoded."""
    scheme, separator, rest = spark_path(path).partition("://")
    return scheme + separator + posixpath.normpath(rest)


def _end(url: str, depth: int) -> str:
    return "/".join(url.split("/")[-depth:])
