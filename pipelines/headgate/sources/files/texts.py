"""Opens the texts in landing files, which may be compressed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.storage.files import Storage


def is_gzip(path: str) -> bool:
    return path.endswith(".gz")


@contextmanager
def text_of(landing: Storage, path: str, start: int = 0) -> Iterator[Any]:
    """A file's text from byte ``start`` on. Raises OSError."""
    with landing.open(path) as raw, gzip.open(raw) if is_gzip(path) else raw as text:
        text.seek(start)
        yield text
