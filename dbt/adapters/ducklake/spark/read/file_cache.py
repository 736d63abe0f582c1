"""A cache for what is read of files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class FileCache(Generic[T]):
    """Caches what was read of files, which never change. A full cache is emptied."""

    def __init__(self, max_size: int, size_of: Callable[[T], int] = lambda value: 1) -> None:
        self._max_size, self._size_of = max_size, size_of
        self._values: dict[Hashable, T] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """The value under a key. Threads that miss it at the same time each read it."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        value = read()
        with self._lock:
            self._size += self._size_of(value)
            if self._size > self._max_size:
                self._values.clear()
                self._size = self._size_of(value)
            self._values[key] = value
        return value
