"""How a job is doing: the status document, replaced after every micro-batch."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from headgate.jobs.medallion import Medallion
from headgate.spec.model import Pipeline
from headgate.storage.documents import write_document
from headgate.storage.layout import Layout


@dataclass
class Progress:
    """``closing`` is the event clock C; ``seconds`` and ``rows`` are those of the last batch;
    ``backlog`` is files (or batches, below bronze) and bytes; ``totals`` are cumulative counts by
    table."""

    pipeline: str
    job: str
    epoch: int
    since: datetime
    layout: Layout
    state: str = "running"
    n: int = 0
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    backlog: tuple[int, int] = (0, 0)
    closing: datetime | None = None
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))
    totals: dict[str, dict[str, int]] = field(default_factory=dict)

    @staticmethod
    def begin(
        pipeline: Pipeline, layout: Layout, job: str, epoch: int, medallion: Medallion
    ) -> Progress:
        """The progress of a job that is about to go on where the tables stand."""
        progress = Progress(pipeline.name, job, epoch, datetime.now(UTC), layout)
        progress._take(medallion)
        progress._write()
        return progress

    def batch_done(self, medallion: Medallion, backlog: tuple[int, int]) -> None:
        """Take the tables' states in after a batch."""
        now = datetime.now(UTC)
        before = self.totals.get("bronze", {}).get("read", 0)
        self._take(medallion)
        self.batches += 1
        self.rows = self.totals.get("bronze", {}).get("read", 0) - before
        self.seconds = (now - self.updated).total_seconds()
        self.backlog = backlog
        self.updated = now
        self._write()

    def idle(self, backlog: tuple[int, int]) -> None:
        self.backlog = backlog
        if backlog == (0, 0):
            self.updated = datetime.now(UTC)

    def finish(self, medallion: Medallion) -> None:
        self._take(medallion)
        self.state = "stopped"
        self._write()

    def _take(self, medallion: Medallion) -> None:
        bronze = medallion.bronze.table.refresh()
        self.n = bronze.n
        self.closing = _time(bronze.closing)
        self.totals = {"bronze": dict(bronze.total)}
        for name, table in medallion.silver.silver.items():
            self.totals[f"silver/{name}"] = dict(table.refresh().total)
        for name, gold in medallion.gold.items():
            self.totals[f"gold/{name}"] = dict(gold.gold.refresh().total)

    def _write(self) -> None:
        path = Layout.document(f"status-{self.job}")
        write_document(self.layout.storage, path, self.document())

    def document(self) -> dict[str, Any]:
        content = {k: v for k, v in asdict(self).items() if k != "layout"}
        content |= {"pid": os.getpid(), "host": socket.gethostname()}
        return {k: v.isoformat() if isinstance(v, datetime) else v for k, v in content.items()}


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC)
