"""The open windows of gold: how many, with how many rows, of what size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.declaration.contracts.operator import bounds_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.samples import Samples
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class _Open:
    version: int
    windows: int
    rows: int
    bytes: int


class StatePart(Reading):
    """Reads the window columns of the open rows again if their table has a new version. Reads no
    other column, and no final row."""

    name: ClassVar[str] = "state"
    every: ClassVar[float] = 15.0

    def __init__(self, place: WatchedPipeline, tables: TablesPart) -> None:
        self._place, self._tables = place, tables
        self._known: dict[str, _Open] = {}

    def read(self, samples: Samples, now: datetime) -> None:
        for gold in self._place.declared.gold.values():
            path = GOLD.path(gold.name)
            if (version := self._tables.version(path)) is None:
                continue
            known = self._known.get(path)
            if known is None or known.version != version or not self._tables.is_sound:
                self._known[path] = known = self._opened(gold, version)
            samples.add("open_windows", known.windows, table=path)
            samples.add("open_rows", known.rows, table=path)
            samples.add("state_bytes", known.bytes, table=path)

    def _opened(self, gold: GoldTable, version: int) -> _Open:
        name, path = self._place.declared.name, GOLD.path(gold.name)
        table = Table(self._place.layout.storage, path, pipeline=name)
        table.refresh()
        files, columns = open_rows(table).files, list(bounds_of(gold))
        windows = set[tuple[object, ...]]()
        for file in files:
            with table.storage.open(file.path) as source:
                times = pq.read_table(source, columns=columns).group_by(columns).aggregate([])
            # As numbers, because datetimes take longer.
            numbers = (times[name].cast(pa.int64()).to_pylist() for name in columns)
            windows.update(zip(*numbers, strict=True))
        rows, size = sum(f.rows for f in files), sum(f.size for f in files)
        return _Open(version, len(windows), rows, size)
