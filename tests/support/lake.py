"""Lakes without Spark: the engine's own jobs and resets, over stages that write with Arrow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.lake.control.ownership import LAYERS
from tests.support.arrow_tables import NOON
from tests.support.declared import files_of
from tests.support.engine import Engine
from tests.support.fake_stages import Record

_SOURCE = """
pipeline: tiny
sources:
  events:
    files: {path: landing, format: json, settle: 0 s}
    record:
      event_id: [id]
      event_time: {column: at}
      duplicates: {within: 1 hour}
      schema: {id: string, at: timestamp, amount: int}
"""
NARROW = (
    _SOURCE
    + """
silver:
  good: {from: events}
gold:
  per_minute:
    from: good
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
"""
)
"""One table of each kind: the tables of the model."""
WIDE = (
    _SOURCE
    + """
silver:
  good: {from: events}
  other: {from: events, where: amount > 0}
gold:
  per_minute:
    from: good
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 seconds
  per_hour:
    from: good
    window: {hopping: {size: 1 hour, every: 30 minutes}}
    measures: {events: count(*)}
    allowed_lateness: 1 minute
"""
)
"""Two silver tables, one of which filters; two gold tables over the other one."""


@dataclass
class Lake(Engine):
    """An ``Engine`` whose stages need no Spark, to be used within ``without_spark``."""

    spark: Any = field(default=None, kw_only=True)
    now: datetime = NOON + timedelta(hours=1)

    def start(self, layers: Sequence[str] = LAYERS) -> Lake:
        super().start(layers)
        return self

    def land(self, *files: Sequence[Record]) -> None:
        """Write new landing files, and list them as a driver does."""
        put(self.pipeline, *files)
        self.list_new()


def put(pipeline: Pipeline, *files: Sequence[Record]) -> None:
    """Write new landing files, each a second newer than the previous one."""
    put_into(Path(files_of(pipeline).path), *files)


def put_into(folder: Path, *files: Sequence[Record]) -> None:
    """As ``put``, into a landing folder."""
    folder.mkdir(parents=True, exist_ok=True)
    first = len(list(folder.iterdir())) + 1
    for number, records in enumerate(files, first):
        path = folder / f"{number:03d}.json"
        path.write_text("".join(f"{record.line()}\n" for record in records))
        seconds = int(NOON.timestamp()) + number
        os.utime(path, ns=(seconds * 10**9,) * 2)


def declared(folder: Path, declaration: str = NARROW) -> Pipeline:
    """Write a declaration into ``folder`` and load it. Its landing folder is in ``folder``, too."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tiny.yml"
    file.write_text(declaration)
    return load(file)
