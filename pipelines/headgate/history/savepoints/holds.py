"""Records what other processes than the driver read, so that a vacuum keeps it while they run.

A hold is a folder with a lock file, which its process keeps locked, and a document in the format of
a savepoint. The hold of a process that has died protects nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import UnreadableSavepoint, savepoints
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.machine.process_tree.presence import is_locked

FOLDER = f"{CONTROL}/backfills"
"""For backfills, and for copies of savepoints."""
_LOCK, _READS = "lock", "reads.json"


@contextmanager
def holding(layout: Layout, name: str) -> Iterator[str]:
    """Create and hold the folder ``name`` for this process; yields its path in the storage."""
    path, lock = f"{FOLDER}/{name}", -1
    while lock < 0:
        layout.storage.make_folder(path)
        try:
            lock = os.open(_lock(layout, name), os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # another process has removed the folder
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _lock(layout, name).exists():  # another process has removed the unlocked folder
            os.close(lock)
            lock = -1
    try:
        yield path
    finally:
        os.close(lock)


def record_hold(layout: Layout, name: str, reads: Savepoint) -> None:
    """Record what the process that holds a folder reads, from now until it ends."""
    write_document(layout.storage, f"{FOLDER}/{name}/{_READS}", reads.document())


@contextmanager
def holding_savepoint(layout: Layout, savepoint: Savepoint) -> Iterator[None]:
    """Keep what a savepoint needs while this process copies it, also if it is deleted meanwhile. If
    this process cannot write to the pipeline's folder, nothing is kept."""
    name = f"copy-{savepoint.id}-{os.getpid()}"
    with ExitStack() as stack:
        with suppress(OSError):
            path = stack.enter_context(holding(layout, name))
            stack.callback(_remove, layout, path)
            record_hold(layout, name, savepoint)
        yield


def _remove(layout: Layout, path: str) -> None:
    """Remove a folder, and the one of all holds if it is empty: this process may belong to another
    user than the pipeline."""
    with suppress(OSError):
        layout.storage.remove(path)
        Path(layout.storage.uri(FOLDER)).rmdir()


def held_reads(layout: Layout) -> Iterator[Savepoint]:
    """What the processes that hold a folder now read."""
    for name in layout.storage.folders(FOLDER):
        if is_held(layout, name):
            with suppress(HeadgateError, ValueError, KeyError, TypeError):
                found = read_document(layout.storage, f"{FOLDER}/{name}/{_READS}")
                if found is not None:
                    yield Savepoint.from_document(found)


def savepoints_and_held(layout: Layout) -> Iterator[Savepoint | UnreadableSavepoint]:
    """All savepoints, then what the processes that hold a folder now read. In this order, nothing
    is missed if a savepoint is deleted meanwhile while it is copied."""
    yield from savepoints(layout)
    yield from held_reads(layout)


def is_held(layout: Layout, name: str) -> bool:
    """Whether the process of a folder still runs."""
    return is_locked(_lock(layout, name))


def _lock(layout: Layout, name: str) -> Path:
    return Path(layout.storage.uri(f"{FOLDER}/{name}/{_LOCK}"))
