"""Clicks and purchases of one source, joined in every way, and what the joins have to be."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import NO_REBUILD, RebuildRequest
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.property.inputs.definitions import LEFT, RIGHT, AsOf, Join, Results
from tests.property.inputs.logs import Row
from tests.support.engine import Engine
from tests.support.landing import Landing, lines
from tests.support.tables import read

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICRO = timedelta(microseconds=1)
LATENESS = timedelta(seconds=20)
DECLARATION = """
pipeline: shop
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, kind: string, user: string, amount: int, at: timestamp}}
silver:
  clicks: {{from: raw, where: "kind = 'click'"}}
  purchases: {{from: raw, where: "kind = 'purchase'"}}
gold:
{gold}
"""
TABLE = """
  {name}:
    join:
      left: clicks
      right: purchases
      on: [user]
      within: {{before: {before} s, after: {after} s}}
      kind: {kind}
      {where}
    columns:
      click: clicks.id
      purchase: purchases.id
      who: coalesce(clicks.user, purchases.user)
    allowed_lateness: 20 s
"""


class AnyJoin(Protocol):
    """A table of the project: its name, its declaration, and the results of some events."""

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    def results(self, rows: Iterable[Event]) -> Results: ...


@dataclass(frozen=True)
class Joined:
    """A join of the project. ``least``: the purchase has this amount at least."""

    name: str
    before: int
    after: int
    kind: str = "inner"
    least: int | None = None

    @property
    def text(self) -> str:
        where = "" if self.least is None else f"where: purchases.amount >= {self.least}"
        return TABLE.format(**vars(self), where=where)

    def results(self, rows: Iterable[Event]) -> Results:
        keeps = {"inner": "", "left": LEFT, "full": LEFT + RIGHT}[self.kind]
        second = timedelta(seconds=1) // MICRO
        definition = Join(-self.before * second, self.after * second, frozenset(keeps))
        meant = [
            e for e in rows if self.least is None or e.kind == "click" or e.amount >= self.least
        ]
        found = dict(definition.results([e.row for e in meant]))
        # A purchase that does not meet the condition has no partner, and is kept.
        left_out = [e.row for e in rows if e not in meant]
        return {**found, **definition.results(left_out)}


AS_OF = """
  seen:
    as_of: {left: purchases, right: clicks, on: [user], within: 30 s}
    columns: {click: clicks.id, purchase: purchases.id, who: purchases.user}
    allowed_lateness: 20 s
"""


@dataclass(frozen=True)
class LastSeen:
    """Each purchase with the last click of its user in the 30 seconds before it."""

    name: str = "seen"

    @property
    def text(self) -> str:
        return AS_OF

    def results(self, rows: Iterable[Event]) -> Results:
        known = [*rows]
        definition = AsOf(timedelta(seconds=30) // MICRO)
        # The left side of the model are purchases here.
        sides = [e.row._replace(source=LEFT if e.kind == "purchase" else RIGHT) for e in known]
        users = {event.id: event.user or "" for event in known}
        found = definition.results(sides)
        return {
            " ".join(filter(None, (click, purchase))): (time, users[purchase])
            for purchase, (time, click) in found.items()
        }


JOINS: tuple[AnyJoin, ...] = (
    Joined("bought", 0, 60),
    Joined("near", 45, 30, "left"),
    Joined("all_of_both", 5, 90, "full"),
    Joined("dear", 0, 60, "full", 50),
    LastSeen(),
)


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    user: str | None
    at: datetime
    amount: int

    @property
    def time(self) -> int:
        return (self.at - NOON) // MICRO

    @property
    def row(self) -> Row:
        source = LEFT if self.kind == "click" else RIGHT
        return Row(self.id, source, self.time, self.user or f"nobody: {self.id}", None)

    @property
    def line(self) -> bytes:
        return json.dumps({**vars(self), "at": self.at.isoformat()}).encode()


def events(count: int, seed: int) -> list[Event]:
    """Events about a second apart, some of them minutes behind; some have equal times."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        behind = chance.choice([0, 0, 0, 0, 3, 15, 40, 200])
        at = NOON + timedelta(seconds=number - behind + chance.choice([0, 0, 0.25]))
        kind = chance.choice(["click", "click", "purchase"])
        user = chance.choice(["ann", "bob", "cem", "dee", None])
        found.append(Event(f"e{number:04}", kind, user, at, chance.randrange(100)))
    return found


def late(sent: Sequence[Event]) -> list[Event]:
    """The events that are late: the greatest time before one is past its own by more than the
    lateness."""
    found, clock = [], None
    for event in sent:
        if clock is not None and clock > event.at + LATENESS:
            found.append(event)
        clock = event.at if clock is None else max(clock, event.at)
    return found


def output(sent: Sequence[Event]) -> int:
    """The output watermark after some events."""
    return (max(event.at for event in sent) - LATENESS - NOON) // MICRO


def prove(engine: Engine) -> None:
    """The ledger holds, by id too, and the tables are as their definitions say."""
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    wanted = dict.fromkeys(engine.pipeline.gold, WHOLE)
    found = recompute(engine.spark, engine.layout, engine.pipeline, wanted, engine.clock())
    assert found.holds
    for table in found.tables:
        assert table.equal == len(read(engine.root, f"gold/{table.table}", "shop"))


@dataclass
class JoinedProject:
    folder: Path
    spark: SparkSession
    joins: Sequence[AnyJoin] = JOINS
    more: str = ""
    landing: Landing = field(init=False)
    sent: list[Event] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.landing = Landing(self.folder / "landing")
        self.landing.folder.mkdir(parents=True)

    @property
    def root(self) -> Path:
        return self.folder / "lake"

    def pipeline(self) -> Pipeline:
        file = self.folder / "shop.yml"
        gold = "".join(each.text for each in self.joins) + self.more
        file.write_text(DECLARATION.format(landing=self.landing.folder, gold=gold))
        return load(file)

    def engine(self, anew: RebuildRequest = NO_REBUILD) -> Engine:
        return Engine(self.spark, self.pipeline(), self.root, anew=anew)

    def land(self, sent: Sequence[Event]) -> None:
        name = f"{len(self.landing.written) + 1:05d}.json"
        self.landing.write(name, lines(event.line for event in sent))
        self.sent += sent

    def rows(self, join: AnyJoin, *, final: bool = True) -> Results:
        """The final rows of a join, or the open ones, by the ids of their events."""
        every = read(self.root, f"gold/{join.name}", "shop")
        found = [row for row in every if row["final"] == final]
        rows = {
            " ".join(filter(None, (row["click"], row["purchase"]))): (
                (row["event_time"] - NOON) // MICRO,
                row["who"] or "",
            )
            for row in found
        }
        assert len(rows) == len(found), "a result is there twice"
        return rows

    def expected(
        self,
        join: AnyJoin,
        included: Iterable[Event],
        upto: int | None = None,
        since: int = -(2**62),
    ) -> Mapping[str, tuple[int, str]]:
        """The rows that a join has for some included events, below an output watermark, from a time
        on."""
        return {
            ids: (time, "" if who.startswith("nobody") else who)
            for ids, (time, who) in join.results([*included]).items()
            if time >= since and (upto is None or time < upto)
        }

    def on_time(self) -> list[Event]:
        left_out = late(self.sent)
        return [event for event in self.sent if event not in left_out]

    def compare(self, included: Iterable[Event], upto: int | None) -> None:
        kept = [*included]
        for join in self.joins:
            rows, meant = self.rows(join), self.expected(join, kept, upto)
            more, fewer = rows.items() - meant.items(), meant.items() - rows.items()
            assert (join.name, more, fewer) == (join.name, set(), set())

    def late_ids(self, join: AnyJoin) -> Iterator[str]:
        for row in read(self.root, f"late/{join.name}", "shop"):
            assert (row["clicks"] is None) == (row["input"] != "clicks")
            assert row[row["input"]]["id"] == row["_event_id"]
            yield row["_event_id"]
