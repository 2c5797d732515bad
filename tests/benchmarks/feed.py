"""The slices of input for both jobs: bids with the faults of real producers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.demo.generator import bids
from headgate.demo.landing import write_slice

SLICE = 125_000  # events
RATE = 10_000.0  # events per second of event time


def write_slices(folder: Path, slices: int, seed: int = 1) -> list[Path]:
    """``slices`` files of ``SLICE`` events, in the past, so that no event is a future record."""
    start = datetime.now(UTC) - timedelta(seconds=slices * SLICE / RATE + 3600)
    made = bids(slices * SLICE, seed, start, RATE, slice_events=SLICE)
    return [
        write_slice(folder, number, piece.lines, piece.now)
        for number, piece in enumerate(made, start=1)
    ]
