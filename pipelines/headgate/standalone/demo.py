"""The demo's project: its DAGs, its declaration, and bids that keep coming.

``python -m headgate.standalone.demo FOLDER`` is the producer.
"""

from __future__ import annotations

import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from headgate.demo import project
from headgate.demo.generator import bids
from headgate.demo.landing import next_sequence, write_slice

PIPELINE = "auctions"
RATE = 50  # bids a second
EVERY = 5.0  # seconds: one file each
_TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "shop" / "dags"


def made(folder: Path, example: Path) -> None:
    """The project in ``folder``, as it was left where it has been made before."""
    if not (folder / "pipelines").exists():
        project.make(folder, example)
    (folder / "dags").mkdir(exist_ok=True)
    for file in _TEMPLATES.glob("*.py"):
        shutil.copyfile(file, folder / "dags" / file.name)


def feed(folder: Path) -> None:
    """Bids as they come, a file every few seconds, until this process is ended. Each run has ids
    of its own."""
    landing = project.landing(folder)
    began = time.time()
    stream = bids(
        sys.maxsize,
        int(began),
        datetime.fromtimestamp(began, UTC),
        RATE,
        slice_events=int(RATE * EVERY),
    )
    for part in stream:
        if (early := part.now.timestamp() - time.time()) > 0:
            time.sleep(early)
        write_slice(landing, next_sequence(landing), part.lines)


if __name__ == "__main__":
    feed(Path(sys.argv[1]))
