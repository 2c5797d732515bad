"""What a person asks of a pipeline with several sources, in commands that may be killed. The oracle
says what the tables of each source are afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from headgate.history.savepoints.store import create_savepoint
from headgate.lake.tables.decisions import LOAD, REBUILD, REPLAY, RESET
from headgate.setup.broker.running import Broker
from tests.oracle import Closing, Measure, SourceRecord, compare, derive
from tests.oracle import Replay as LateReplay
from tests.support.driver_here import run_here
from tests.support.events import reading, readings
from tests.support.landing import ARRIVED, Landing, lines, loaded, split
from tests.support.market import GOLD, Folder, Market, Meant, Source, folders, market_rules
from tests.support.readings import GOLD_KEYS, NOON
from tests.support.several_readings import tables_of
from tests.support.tables import Row, read

BOTH = ("in1", "in2")


@dataclass
class MarketRequest(ABC):
    """``kind`` is that of the decision. ``meant`` are the operations of ``prepare``. The next input
    of the sources of ``moving`` may be read before, during or after the request. The sources of
    ``away`` are declared again after it."""

    kind: ClassVar[str]
    moving: ClassVar[Sequence[str]] = BOTH
    away: ClassVar[Sequence[str]] = ()
    meant: Meant = field(default_factory=dict, init=False)

    def sources(self, folder: Path, broker: Callable[[], Broker]) -> Mapping[str, Source]:
        """The sources of a market in ``folder``. ``broker`` starts a broker, if they need one."""
        return folders(folder, len(BOTH), 5, 40)

    def prepare(self, spark: SparkSession, market: Market) -> None:
        """Three parts of one source and two of the other are in all tables, and drained."""
        market.deliver(3, "in1")
        market.deliver(2, "in2")
        self.meant = {name: [at] for name, at in drained(spark, market).items()}

    @abstractmethod
    def command(self, market: Market) -> Sequence[str | Path]:
        """The command line without `headgate`."""

    def check(self, market: Market) -> None:
        """Compare the tables of each source with the oracle's. The model of the protocol knows only
        some requests."""
        market.is_derived(self.meant)


def drained(spark: SparkSession, market: Market) -> Mapping[str, Closing]:
    """Process what has arrived, and drain. Returns where each source was."""
    run_here(spark, replace(market.task, drain=True))
    return {name: Closing(source.position) for name, source in market.sources.items()}


@dataclass
class Restore(MarketRequest):
    """After the savepoint, late pairs of one source were replayed, and both were drained."""

    kind = RESET
    reread: bool = False

    def prepare(self, spark: SparkSession, market: Market) -> None:
        super().prepare(spark, market)
        create_savepoint(market.layout, market.pipeline, datetime.now(UTC))
        replay = LateReplay(market.sources["in1"].position, "bands")
        market.say(spark, "late", "replay", *market.of("gold.in1_bands"))
        market.deliver(1)
        later = drained(spark, market)
        after: Meant = {"in1": [replay, later["in1"]], "in2": [None, later["in2"]]}
        if self.reread:  # bronze has other batches then: later operations have no place there
            after = {"in1": [None, None], "in2": [None, None]}
        self.meant = {name: [*self.meant[name], *after[name]] for name in BOTH}

    def command(self, market: Market) -> Sequence[str | Path]:
        reread = ("--reread",) if self.reread else ()
        return "savepoint", "restore", *market.of("latest"), *reread


@dataclass
class RestoreBeforeSource(Restore):
    """One of the sources was added after the savepoint. Its bronze stays."""

    def prepare(self, spark: SparkSession, market: Market) -> None:
        market.declare("in1")
        market.deliver(3, "in1")
        first = drained(spark, market)["in1"]
        create_savepoint(market.layout, market.pipeline, datetime.now(UTC))
        market.declare(*BOTH)
        market.deliver(1, "in1")
        market.deliver(2, "in2")
        later = drained(spark, market)
        self.meant = {
            "in1": [first, None if self.reread else later["in1"]],
            "in2": [None, later["in2"]],
        }


@dataclass
class RestoreWithoutSource(Restore):
    """One of the sources was removed after the savepoint. Its silver and gold go back, its bronze
    stays."""

    away = ("in2",)

    def prepare(self, spark: SparkSession, market: Market) -> None:
        market.deliver(3, "in1")
        market.deliver(1, "in2")
        run_here(spark, market.task)
        create_savepoint(market.layout, market.pipeline, datetime.now(UTC))
        market.deliver(1, "in2")
        drain = drained(spark, market)
        market.declare("in1")
        market.deliver(1, "in1")
        run_here(spark, market.task)
        replay = LateReplay(market.sources["in1"].position, "bands")
        market.say(spark, "late", "replay", *market.of("gold.in1_bands"))
        self.meant = {
            "in1": [None, None] if self.reread else [drain["in1"], replay],
            "in2": [drain["in2"], None],
        }


@dataclass
class Rebuild(MarketRequest):
    """Silver tables of both sources, and what is built on them."""

    kind = REBUILD

    def command(self, market: Market) -> Sequence[str | Path]:
        again = ("--full-refresh", "silver.in1_clean", "--full-refresh", "silver.in2_strong")
        return "run", *market.of(), "--once", *again


@dataclass
class Upgrade(MarketRequest):
    """By a changed declaration, one source is read again, and a silver table of the other is
    rebuilt. `headgate upgrade` starts this command."""

    kind = REBUILD

    def prepare(self, spark: SparkSession, market: Market) -> None:
        super().prepare(spark, market)
        strong = "  in2_strong:\n    from: in2\n    where: level >= "
        market.change({f"{strong}5": f"{strong}7"})
        first, second = market.declaration.read_text().split("  in2:\n")
        within = first.replace("within: 10 minutes", "within: 20 minutes")
        market.declaration.write_text(f"{within}  in2:\n{second}")
        # Only where bronze is read again, the operations of before are void.
        self.meant = {"in1": [None], "in2": self.meant["in2"]}

    def command(self, market: Market) -> Sequence[str | Path]:
        return "run", *market.of(), "--once", "--apply"

    def check(self, market: Market) -> None:
        plain = market_rules()
        assert plain.within is not None
        strong = replace(
            plain.silver["strong"],
            where=lambda row: None if row["level"] is None else row["level"] >= 7,
        )
        used = {
            "in1": replace(plain, within=2 * plain.within),
            "in2": replace(plain, silver={**plain.silver, "strong": strong}),
        }
        market.is_derived(self.meant, used)


@dataclass
class Load(MarketRequest):
    """Some ids of the archive are those of the source, or of the other one. The source stands still
    meanwhile: lateness and duplicates depend on its position."""

    kind = LOAD
    moving = ("in1",)

    def archive(self, market: Market) -> Landing:
        """The history that is loaded, in a folder of its own."""
        archive = Landing(market.folder / "archive")
        archive.write_all(split([*readings(60, seed=33), *readings(200, seed=2)[:20]], 4))
        return archive

    def command(self, market: Market) -> Sequence[str | Path]:
        folder = self.archive(market).folder
        return "load", *market.of(), "--files", folder, "--source", "in2"

    def check(self, market: Market) -> None:
        replayed = [each.document["table"] for each in market.decisions().operations[1:]]
        assert sorted(replayed) == sorted(f"in2_{name}" for name in GOLD)
        (drain,) = self.meant["in2"]
        assert isinstance(drain, Closing)
        at = drain.after
        folds = [LateReplay(at, name.removeprefix("in2_"), load=1) for name in replayed]
        meant: Meant = {
            "in1": [*self.meant["in1"], *(None for _ in folds)],
            "in2": [drain, *folds],
        }
        came = loaded(self.archive(market), at, happenings=1)
        market.is_derived(meant, more={"in2": came})


BAD = reading("bad", NOON, site="north", value=3, level="many")
GOOD = BAD.replace(b'"many"', b"5")


@dataclass
class Replay(MarketRequest):
    """Both sources have the same invalid record at the same position, and later a valid copy: a
    duplicate only where the replay was."""

    kind = REPLAY
    moving = ("in1",)

    def sources(self, folder: Path, broker: Callable[[], Broker]) -> Mapping[str, Source]:
        return {
            name: Folder(
                [
                    lines([BAD, *readings(20, seed=40 + number)]),
                    lines([GOOD, *readings(20, seed=50 + number)]),
                ],
                folder / name,
            )
            for number, name in enumerate(BOTH)
        }

    def prepare(self, spark: SparkSession, market: Market) -> None:
        market.deliver(1)
        run_here(spark, market.task)

    def command(self, market: Market) -> Sequence[str | Path]:
        patch = "replace(value, '\"many\"', '5')"
        meant = ("--source", "in2", "--id", "bad", "--patch", patch)
        return "quarantine", "replay", *market.of(), *meant

    def check(self, market: Market) -> None:
        assert market.differences("in1", market.expected("in1")) == {}
        first = max(one.offset for one in market.sources["in2"].records() if one.offset < 1 << 36)
        came = SourceRecord(0, first + 1, GOOD, ARRIVED)
        expected, root = market.expected("in2", more=[came]), tables_of(market.root, "in2")
        assert [r["value"] for r in expected.silver["clean"] if r["_event_id"] == "bad"] == [3]
        # The copy has a position of its own in bronze, which the oracle does not know.
        for name in GOLD:
            assert compare(expected.gold[name], read(root, f"gold/{name}"), GOLD_KEYS[name]) == []
            assert ids(expected.late[name]) == ids(read(root, f"late/{name}"))
        for name, rows in expected.silver.items():
            assert ids(rows) == ids(read(root, f"silver/{name}"))
        market.accounts_for({"in2": 1})


def ids(rows: Sequence[Row]) -> Sequence[tuple[str, Any]]:
    """The event ids, with the begin of the window of late pairs."""
    return sorted((row["_event_id"], row.get("window_start")) for row in rows)


@dataclass
class Backfill(MarketRequest):
    """Final rows of both sources are computed again by another formula."""

    kind = "backfill"

    def command(self, market: Market) -> Sequence[str | Path]:
        other = market.folder / "other.txt"
        text = market.declaration.read_text()
        other.write_text(text.replace("heaviest: max(weight)", "heaviest: min(weight)"))
        tables = ("gold.in1_bands", "gold.in2_bands")
        since = ("--from", "2026-02-01", "--declaration", other, "--publish")
        return "backfill", *market.of(*tables), *since

    def check(self, market: Market) -> None:
        plain = market_rules()
        bands = plain.gold["bands"]
        smallest = Measure("min", lambda row: row["weight"], "double")
        measures = {**bands.measures, "heaviest": smallest}
        used = replace(plain, gold={**plain.gold, "bands": replace(bands, measures=measures)})
        for name in BOTH:
            meant: Meant = {name: [*self.meant[name], None]}
            expected = market.expected(name, meant)
            by_other = market.expected(name, meant, used).gold["bands"]
            final = self._final(market, name)
            rows = [
                {**new, "revision": int(new != old)} if key_of(old) in final else old
                for old, new in zip(expected.gold["bands"], by_other, strict=True)
            ]
            assert rows != expected.gold["bands"]
            patched = replace(expected, gold={**expected.gold, "bands": rows})
            assert market.differences(name, patched) == {}, name
        market.accounts_for()

    def _final(self, market: Market, name: str) -> frozenset[Any]:
        """The keys of the rows that were final when the backfill read them."""
        (drain,) = self.meant[name]
        assert isinstance(drain, Closing)
        known = [r for r in market.sources[name].records() if drain.saw(r.partition, r.offset)]
        rows = derive(known, market_rules(), drains=[drain]).gold["bands"]
        return frozenset(key_of(row) for row in rows if row["final"])


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in GOLD_KEYS["bands"])
