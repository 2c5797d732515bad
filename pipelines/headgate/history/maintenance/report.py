"""What maintenance did to a table, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.history.maintenance.retention import KeepReason, LogReason
from headgate.lake.tables.data_file import DataFile


@dataclass(frozen=True)
class Amount:
    """Some files, and their size in bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.files + other.files, self.bytes + other.bytes)

    @staticmethod
    def of(*files: DataFile) -> Amount:
        return Amount(len(files), sum(file.size for file in files))


@dataclass(frozen=True)
class Compacted:
    """``merged`` files became ``into``. ``small`` files are left, because they are too few, alone
    between two operations, or still read by name."""

    table: str
    merged: Amount = Amount()
    into: Amount = Amount()
    small: Amount = Amount()


@dataclass(frozen=True)
class Vacuumed:
    """``removed`` files are deleted; ``kept`` files are not, for the first reason that applies.
    ``entries`` is the number of log entries that are deleted. ``log_from`` is the oldest remaining
    log version, ``log_why`` the reason why it is kept."""

    table: str
    removed: Amount = Amount()
    kept: Mapping[KeepReason, Amount] = field(default_factory=dict)
    entries: int = 0
    log_from: int = 0
    log_why: LogReason = "position"


MaintenanceReport = Compacted | Vacuumed
