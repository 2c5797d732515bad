"""The demo's project: its DAGs, its declaration, and a producer of bids.

``python -m headgate.setup.standalone.demo FOLDER`` is the producer.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.declaration.kinds import BRONZE
from headgate.flow.sources.files.log import FilesLog, LoggedFile
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table
from headgate.machine.process_tree.guard import Child
from headgate.setup.demo import project
from headgate.setup.demo.feeding import next_sequence, write_slice
from headgate.setup.demo.generator import bids
from headgate.supervision.job_state import probe
from headgate.supervision.local import HEADGATE

PIPELINE = "auctions"
RATE = 50  # bids a second
EVERY = 5.0  # seconds between two files
SOURCE = "bids"
KEPT = timedelta(hours=6)
"""How long landing files are kept after they were written: 170 MB of them. Unread ones stay
longer."""
_TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "shop" / "dags"


def made(folder: Path, example: Path) -> None:
    """Create the project in ``folder``. An existing project is kept, but its DAGs are replaced."""
    if not (folder / "pipelines").exists():
        project.make(folder, example)
    (folder / "dags").mkdir(exist_ok=True)
    for file in _TEMPLATES.glob("*.py"):
        shutil.copyfile(file, folder / "dags" / file.name)


def children(folder: Path) -> dict[str, Child]:
    """The producer and, in a new project, a process that starts the stream, which Airflow adopts
    once Airflow runs. In an existing project the stream is not started: it may have been stopped on
    request."""
    root = folder / "lake"
    feeding = Child((sys.executable, "-m", __spec__.name, str(folder)), prepared=False)
    if probe(Layout.of(str(root), PIPELINE), datetime.now(UTC)):
        return {"producer": feeding}
    file = folder / "pipelines" / f"{PIPELINE}.yml"
    starting = (*HEADGATE, "start", str(file), "--root", str(root))
    return {"producer": feeding, "driver": Child(starting, prepared=False, ended="left")}


def feed(folder: Path) -> None:
    """Write bids, a file every few seconds, until this process is ended. Each run has its own
    ids."""
    landing = project.landing(folder)
    layout = Layout.of(str(folder / "lake"), PIPELINE)
    began = tidied = time.time()
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
        if time.time() - tidied > KEPT.total_seconds() / 10:
            tidied = time.time()
            tidy(landing, layout, datetime.now(UTC))


def tidy(landing: Path, layout: Layout, now: datetime) -> None:
    """Remove old landing files that were read: a stream may run for weeks."""
    bronze = Table(layout.storage, BRONZE.path(SOURCE), pipeline=PIPELINE)
    log = FilesLog.of(layout.storage, PIPELINE, SOURCE)
    if bronze.exists and log.table.exists:
        read = BronzePayload.of(bronze.refresh()).sequence
        log.load()
        for path in outlived(log.files, read, now):
            (landing / path).unlink(missing_ok=True)


def outlived(files: Sequence[LoggedFile], read: int, now: datetime) -> list[str]:
    """The paths of files that bronze has read (up to sequence ``read``) and that are older than
    ``KEPT``. The last file stays, because the next is numbered after it."""
    return [f.path for f in files[:-1] if f.sequence <= read and f.modified < now - KEPT]


if __name__ == "__main__":
    feed(Path(sys.argv[1]))
