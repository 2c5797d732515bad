"""Decides what must be kept of a table, and why. These are functions of plain values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headgate.lake.tables.log import LogFolder

KeepReason = Literal["live", "rebuilt", "batches", "unpublished", "ledger", "recent", "savepoints"]

KEEP_WHY: Mapping[KeepReason, str] = {
    "live": "in the table now",
    "rebuilt": "of a rebuild that is under way",
    "batches": "of batches that a table, or one that goes back to a savepoint, may still read",
    "unpublished": "not published, or not read by a rollup, yet",
    "ledger": "what a table that lags behind is compared with",
    "recent": "written, or in the table, within the time that readers are given",
    "savepoints": "of savepoints only",
}
"""The reason for which a file is kept is the first of these that applies."""

LogReason = Literal[
    "checkpoints", "position", "readers", "batches", "unpublished", "savepoints", "reset"
]

LOG_WHY: Mapping[LogReason, str] = {
    "checkpoints": "two Delta checkpoints are kept, in case one is damaged",
    "position": "the table's last batch",
    "readers": "the time that readers are given",
    "batches": "the batches that a downstream table, or the ledger, may still need",
    "unpublished": "what is not published, or not read by a rollup, yet",
    "savepoints": "the oldest savepoint",
    "reset": "a reset that was not finished",
}

_ATTEMPT = re.compile(r"data/(\d+)-(\d+)-")
_SIDECAR = re.compile(r"\.([^/]+)\.crc$")
WORTH_A_CHECKPOINT = 50  # entries that a new checkpoint makes removable


@dataclass(frozen=True)
class BatchRange:
    """The batches after batch id ``n`` in the generations from ``first_generation`` to
    ``last_generation``, both included."""

    first_generation: int
    last_generation: int
    n: int

    def has(self, generation: int, n: int) -> bool:
        return self.first_generation <= generation <= self.last_generation and n > self.n


@dataclass(frozen=True)
class TableNeeds:
    """The files of a table that may still be read, by their paths. Files written at or after
    ``since`` are kept."""

    since: datetime
    live: Collection[str] = ()
    rebuilt: Collection[str] = ()
    batches: Collection[BatchRange] = ()
    unpublished: Collection[str] = ()
    ledger: Collection[str] = ()
    recent: Collection[str] = ()
    saved: Collection[str] = ()

    def reason(self, path: str, modified: datetime) -> KeepReason | None:
        """Why a file under ``data/`` is kept; None if nothing needs it."""
        path = _SIDECAR.sub(r"\1", path)
        attempt = _ATTEMPT.match(path)
        generation, n = (int(attempt[1]), int(attempt[2])) if attempt else (-1, -1)
        holds: Mapping[KeepReason, bool] = {
            "live": path in self.live,
            "rebuilt": path in self.rebuilt,
            "batches": any(batches.has(generation, n) for batches in self.batches),
            "unpublished": path in self.unpublished,
            "ledger": path in self.ledger,
            "recent": modified >= self.since or path in self.recent,
            "savepoints": path in self.saved,
        }
        return next((reason for reason in KEEP_WHY if holds[reason]), None)


@dataclass(frozen=True)
class LogTrim:
    """Log entries below version ``to``, which has a checkpoint, are removed; ``why`` is the reason
    for which the rest is kept. ``checkpoint`` is the version at which a checkpoint must be created
    first, if any."""

    to: int
    why: LogReason
    checkpoint: int | None = None


def trim_log(folder: LogFolder, needed: Mapping[LogReason, int]) -> LogTrim:
    """Decides how much of a log can be removed. ``needed`` has the lowest needed version by reason.
    The log then starts at a checkpoint that is not above any of them, and at least one more
    checkpoint follows. If there is no such checkpoint, nothing is removed."""
    why, lowest = min(needed.items(), key=lambda item: item[1])
    below = [c for c in folder.checkpoints if folder.oldest <= c <= lowest]
    make = lowest if lowest - max(below, default=folder.oldest) >= WORTH_A_CHECKPOINT else None
    made = sorted({*folder.checkpoints, *([] if make is None else [make])})
    usable = [c for c in made if folder.oldest <= c <= lowest]
    two_left = [c for c in usable if c < made[-1]]
    if not two_left:
        return LogTrim(folder.oldest, why if not usable else "checkpoints", make)
    return LogTrim(two_left[-1], why if two_left[-1] == usable[-1] else "checkpoints", make)
