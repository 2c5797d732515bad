"""Decides where micro-batches over recorded files end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headgate.flow.sources.files.log import LoggedFile


def batch_ends(pending: Iterable[LoggedFile], *, max_files: int, max_bytes: int) -> Iterator[int]:
    """The sequences at which batches over ``pending`` end. Each batch is within both bounds, but
    has at least one file."""
    files = size = last = 0
    for file in pending:
        if files and (files + 1 > max_files or size + file.size > max_bytes):
            yield last
            files = size = 0
        files, size, last = files + 1, size + file.size, file.sequence
    if files:
        yield last
