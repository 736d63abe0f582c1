"""Encrypted Parquet files in Spark: a file system of Hadoop's encrypts and decrypts them.

Spark's Parquet reader and writer see plain files under the paths that `encrypted_path` makes. Such a path has the key
of its file, sealed with a key of this process. Spark prints paths in plans and logs, but no settings that are named a
secret, which is where it gets the process's key from.

The file system is in Java: `java_classes/encryption`.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ...lake.encryption import FileKey
from ...lake.errors import LakeError
from .java_classes import JAR

_SCHEME = "ducklake"
_NO_AUTHORITY = "-"
_PROCESS_KEY = os.urandom(32)
_PROCESS_KEY_SETTING = "ducklake.encryption.secret"
_SETTINGS = {
    f"fs.{_SCHEME}.impl": "dbt.ducklake.encryption.EncryptedFileSystem",
    # Hadoop caches file systems with the settings of the session that used them first.
    f"fs.{_SCHEME}.impl.disable.cache": "true",
    _PROCESS_KEY_SETTING: base64.b64encode(_PROCESS_KEY).decode(),
}
_JAVA_PACKAGE = "dbt.ducklake.encryption"


def encrypted_path(path: str, key: FileKey) -> str:
    """The path with which Spark reads or writes a file of this URL, or files in this folder, as plain Parquet."""
    scheme, _, rest = path.partition("://")
    authority, _, tail = rest.partition("/")
    return f"{_SCHEME}:///{_sealed(key)}/{scheme}/{authority or _NO_AUTHORITY}/{tail}"


def _sealed(key: FileKey) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # The same text each time, so that Spark recognizes two scans of a file in one query.
    nonce = hashlib.blake2b(key.value, key=_PROCESS_KEY, digest_size=12).digest()
    sealed = nonce + AESGCM(_PROCESS_KEY).encrypt(nonce, key.value, None)
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


@contextmanager
def encrypted_paths_in(spark: SparkSession, *paths: str) -> Iterator[None]:
    """Lets Spark use encrypted paths in the block, if there are any among the paths."""
    if not any(path.startswith(f"{_SCHEME}:") for path in paths):
        yield
        return
    if spark.conf.get(_PROCESS_KEY_SETTING, None) != _SETTINGS[_PROCESS_KEY_SETTING]:
        for name, value in _SETTINGS.items():
            spark.conf.set(name, value)
    try:
        yield
    except Exception as error:
        text = str(error)
        if "ClassNotFoundException" in text and _JAVA_PACKAGE in text:
            raise LakeError(
                "this Spark was started without the jar that reads and writes encrypted lakes; start it with the"
                f" setting spark.jars={JAR}"
            ) from error
        raise
