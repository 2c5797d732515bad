"""Write events of Nexmark into a landing folder: python -m tests.nexmark FOLDER EVENTS [SEED].

A file has 50,000 events, five seconds of event time. The last event is as old as this moment. With
the same seed, only times differ.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.setup.demo.feeding import next_sequence, write_slice
from tests.nexmark.generator import Stream

FILE = 50_000
RATE = 10_000.0


def main(folder: str, events: str, seed: str = "1") -> None:
    landing, count = Path(folder), int(events)
    if landing.exists() and next_sequence(landing):
        sys.exit(f"{landing} already has files. Name another folder, or remove it: rm -r {folder}")
    start = datetime.now(UTC) - timedelta(seconds=count / RATE)
    for number, part in enumerate(Stream(int(seed), start, RATE).slices(count, FILE)):
        write_slice(landing, number, part.lines, part.now)


if __name__ == "__main__":
    main(*sys.argv[1:])
