"""Where micro-batches end, and what Spark has planned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from headgate.sources.files.log import LoggedFile
from headgate.storage.files import Storage
from headgate.storage.layout import Layout


def batch_ends(pending: Iterable[LoggedFile], *, max_files: int, max_bytes: int) -> Iterator[int]:
    """The sequences at which batches over ``pending`` end: each within both bounds, but never
    without a file."""
    files = size = last = 0
    for file in pending:
        if files and (files + 1 > max_files or size + file.size > max_bytes):
            yield last
            files = size = 0
        files, size, last = files + 1, size + file.size, file.sequence
    if files:
        yield last


def planned_end(storage: Storage, checkpoint: str, batch: int) -> int:
    """The end of a planned batch, from Spark's offset log (its last line is the source's)."""
    lines = storage.read(f"{checkpoint}/offsets/{batch}").decode().splitlines()
    return int(json.loads(lines[-1])["end"])


def ends_path(layer: str) -> str:
    """The document that the reference source reads."""
    return Layout.document(f"ends-{layer}")
