"""The slices of input for both jobs: bids with the faults of real producers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from headgate.setup.demo.feeding import write_slice
from headgate.setup.demo.generator import bids

SLICE = 125_000  # events
RATE = 10_000.0  # events per second of event time
SMALL_FILES = 10_000
"""How many small files have the events of one slice."""


def write_slices(folder: Path, slices: int, seed: int = 1, files: int = 1) -> list[Path]:
    """``slices`` times ``files`` files that have ``SLICE`` events together, in the past, so that no
    event is a future record."""
    start = datetime.now(UTC) - timedelta(seconds=slices * SLICE / RATE + 3600)
    made = bids(slices * SLICE, seed, start, RATE, slice_events=SLICE)
    return [
        write_slice(folder, number, lines, piece.now)
        for number, (piece, lines) in enumerate(
            ((piece, lines) for piece in made for lines in _divided(piece.lines, files)), start=1
        )
    ]


def _divided(lines: Sequence[bytes], files: int) -> Iterator[Sequence[bytes]]:
    """``lines`` in so many parts of about equal length, in order."""
    ends = [len(lines) * k // files for k in range(files + 1)]
    return (lines[begin:end] for begin, end in pairwise(ends))
