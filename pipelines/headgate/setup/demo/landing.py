"""Writes slices of records to a landing folder as a producer must: atomically, by rename."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from headgate.setup.demo.generator import Slice

Deliver = Callable[[int, Slice], None]
"""Takes the number of a slice, and the slice."""


def into_folder(folder: Path) -> Deliver:
    """A function that writes each slice as a file, with ``now`` of the slice as modification
    time."""

    def deliver(number: int, part: Slice) -> None:
        write_slice(folder, number, part.lines, modified=part.now)

    return deliver


def write_slice(
    folder: Path, sequence: int, lines: Sequence[bytes], modified: datetime | None = None
) -> Path:
    """Write ``lines`` as one file named after ``sequence``, so that names sort in its order.

    The file is written under a dot-prefixed name, which readers ignore, and renamed into place.
    ``modified`` becomes its modification time before the rename. Raises FileExistsError rather than
    replace a file that may have been read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sequence:010d}.json"
    if path.exists():
        raise FileExistsError(path)
    draft = folder / f".{path.name}"
    draft.write_bytes(b"\n".join(lines) + b"\n" if lines else b"")
    if modified is not None:
        os.utime(draft, (modified.timestamp(), modified.timestamp()))
    return draft.rename(path)


def next_sequence(folder: Path) -> int:
    """One more than the highest number of the files in ``folder``; 0 if there are none."""
    taken = [int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()]
    return max(taken, default=-1) + 1
