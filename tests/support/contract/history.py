"""One history of a pipeline that has the tables of all cases. The input is the same in every
layout, and operations are at the same places of it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.history.loads.requests import all_loads
from tests.support.backfilled import backfill, publish
from tests.support.contract.cases import CASES, DAY, HOUR, MICRO, SUM, Event
from tests.support.contract.layouts import Layout
from tests.support.contract.model import Model
from tests.support.engine import Engine
from tests.support.landing import Landing, lines

DECLARATION = """
pipeline: contract
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s, max_files_per_batch: 1}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
"""
BEGIN = datetime(2018, 10, 24, tzinfo=UTC)
"""On 28 October, the day has 25 hours in Berlin."""
SEEN, MINUTE = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(minutes=1)
ARRIVALS, LOADED_ARRIVALS = (0, 25, 40, 55, 75, 100, 130), (20, 50)
"""When the files were written, in minutes after ``SEEN``."""
FILES, PER_FILE = len(ARRIVALS), 40
CORRECTED = BEGIN + DAY, BEGIN + 5 * DAY + HOUR
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}


@dataclass(frozen=True)
class Input:
    """The files of the source and, in ``archive``, those that a load brings."""

    landing: Landing
    archive: Landing
    files: Sequence[Sequence[Event]]
    loaded: Sequence[Sequence[Event]]

    @staticmethod
    def of(folder: Path, seed: int) -> Input:
        chance = random.Random(seed)
        files = [stream(chance, number) for number in range(FILES)]
        loaded = [old(chance, number) for number in range(2)]
        landing, archive = Landing(folder / "landing"), Landing(folder / "archive")
        for into, of in ((landing, files), (archive, loaded)):
            for number, events in enumerate(of, 1):
                seen = events[0].arrived
                into.write(f"{number:05d}.json", lines(map(record, events)), seen)
        return Input(landing, archive, files, loaded)


def stream(chance: random.Random, number: int) -> list[Event]:
    """Two weeks in all files, mostly in order. Some events are late by hours or days, and some
    come exactly when a window of a case begins or ends."""
    found = []
    for place in range(number * PER_FILE, (number + 1) * PER_FILE):
        at = BEGIN + 14 * DAY * place / (FILES * PER_FILE)
        dice = chance.random()
        if dice < 0.25:
            at -= chance.random() * 14 * HOUR
        elif dice < 0.35:
            at -= chance.random() * 4 * DAY
        elif dice < 0.45:
            at = at.replace(hour=chance.choice((6, 12, 22, 23)), minute=0, second=0, microsecond=0)
            at += chance.choice((-1, 0, 0)) * MICRO
        found.append(event(chance, f"s-{place}", at, (0, place), SEEN + ARRIVALS[number] * MINUTE))
    return found


def old(chance: random.Random, number: int) -> list[Event]:
    """History of a load, from before the stream and from its first days."""
    return [
        event(
            *(chance, f"l-{number}-{place}", BEGIN + (chance.random() * 9 - 2) * DAY),
            *((-1, 100 * number + place), SEEN + LOADED_ARRIVALS[number] * MINUTE),
        )
        for place in range(15)
    ]


def event(
    chance: random.Random, id_: str, at: datetime, order: tuple[int, ...], arrived: datetime
) -> Event:
    level = chance.choice((None, *range(8)))
    return Event(id_, at, chance.choice(("a", "a", "b", None)), {"level": level}, order, arrived)


def record(event: Event) -> bytes:
    said = {"id": event.id, "site": event.site, "at": event.at.isoformat(), **event.values}
    return json.dumps(said).encode()


def declare(folder: Path, given: Input) -> Pipeline:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "contract.yml"
    tables = "".join(case.declaration() for case in CASES)
    file.write_text(DECLARATION.format(landing=given.landing.folder) + tables)
    return load(file)


def with_ranges() -> list[str]:
    """The tables that a backfill can compute."""
    return [case.table for case in CASES if case.is_corrected and case.reads is None]


class History:
    """A pipeline that goes on in a layout, and what its tables should have."""

    def __init__(self, spark: SparkSession, folder: Path, given: Input, layout: Layout) -> None:
        self.layout, self.model = layout, Model()
        self._given, self._done = given, 0
        self.engine = Engine(spark, declare(folder, given), folder / "root")
        self.engine.list_new()
        layout.begin(self.engine)

    def deliver(self, files: int) -> None:
        first, self._done = self._done, self._done + files
        for events in self._given.files[first : self._done]:
            self.model.deliver(events)
        self.layout.deliver(self.engine, first, self._done)

    def drain(self) -> None:
        self.model.drain()
        self.layout.decide(self.engine, "drain")
        self.layout.settle(self.engine)

    def replay(self) -> None:
        """Fold all late pairs of each table that has a late table."""
        self.model.replay()
        for case in CASES:
            if case.reads is None:
                self.layout.decide(self.engine, "late_replay", table=case.table, **EVERYTHING)
        self.layout.settle(self.engine)

    def load(self) -> None:
        self.model.load([event for events in self._given.loaded for event in events])
        self.layout.load(self.engine, self.engine.begin_load(files=str(self._given.archive.folder)))
        wishes = [each.wish for each in all_loads(self.engine.layout, self.engine.pipeline.name)]
        assert wishes == ["done"]

    def restored(self, files: int) -> None:
        """Take a savepoint, go on with some files and a drain, and go back. Bronze stays, and so
        does the drain."""
        engine = self.engine
        savepoint = engine.savepoint()
        self.deliver(files)
        self.drain()
        engine.restore(savepoint)
        self.engine = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now)
        self.layout.begin(self.engine)
        self.layout.settle(self.engine)

    def correct(self) -> None:
        """Publish a backfill with another formula."""
        self.layout.catch_up(self.engine)
        begin, end = CORRECTED
        file = self.engine.pipeline.file.with_name("other.yml")
        file.write_text(self.engine.pipeline.text.replace(SUM, "sum(level + 1)"))
        tables = with_ranges()
        found = backfill(self.engine, begin=begin, end=end, tables=tables, used=load(file))
        assert all(table.changed for table in found.report.tables)
        publish(self.engine, found)
        self.model.correct(tables, begin, end)
        self.layout.take_in(self.engine)

    def end(self) -> None:
        self.layout.catch_up(self.engine)
