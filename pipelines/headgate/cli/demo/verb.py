"""``headgate demo``: runs sample events through bronze, silver and gold."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import psutil
import typer

from headgate import exit_codes
from headgate.cli.options import Json, checked_root
from headgate.cli.output import console, respond
from headgate.declaration.kinds import GOLD, kind_of
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold, Release
from headgate.lake.storage.documents import encoded
from headgate.lake.storage.layout import Layout
from headgate.setup.demo.feeding import Deliver, Feeder
from headgate.setup.demo.generator import TABLE, outlier

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.driver.progress import JobProgress


def demo(
    events: Annotated[
        int, typer.Option("--events", min=1, help="How many bids to send.")
    ] = 200_000,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Through a topic of a broker of its own.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed, the same bids.")] = 7,
    root: Annotated[
        str | None, typer.Option("--root", help="A folder for it all; a temporary one if left out.")
    ] = None,
    json: Json = False,
) -> None:
    """Watch a stream of bids, with all their faults, become gold. Needs nothing but Java."""
    from headgate.cli.demo.screen import show_results
    from headgate.cli.ledger import summary
    from headgate.insight.ledger import balance
    from headgate.setup.demo.feeding import into_folder
    from headgate.setup.demo.project import lake, landing, require_new

    folder = Path(checked_root(root or tempfile.mkdtemp(prefix="headgate-demo-")))
    servers = None
    if kafka:
        require_new(folder)
        with _broker(folder) as servers:
            from headgate.setup.demo.topic import into_topic

            declared, layout = _declare(folder, "auctions_kafka", servers)
            first_gold, held = _run(
                declared, layout, str(lake(folder)), into_topic(servers), events, seed, json
            )
    else:
        declared, layout = _declare(folder, "auctions", None)
        deliver = into_folder(landing(folder))
        first_gold, held = _run(declared, layout, str(lake(folder)), deliver, events, seed, json)
    seconds = time.time() - psutil.Process().create_time()
    account = balance(layout, declared)
    measured = {
        "root": str(lake(folder)),
        "first_gold_seconds": first_gold,
        "held": held and encoded(held.hold),
        "released": held and encoded(held.given),
    }
    respond(
        json,
        measured | summary(account, account.batches, seconds),
        lambda: show_results(
            console(), declared, layout, folder, account, first_gold, held, servers
        ),
    )
    if not account.balanced:
        raise typer.Exit(exit_codes.FAILED)


@contextmanager
def _broker(folder: Path) -> Iterator[str]:
    """Yields the address of a broker that has the topic of bids and ends after the block. Its data
    is in the demo's folder, where ``headgate kafka up`` finds it again."""
    from headgate.cli.driving import require_java
    from headgate.machine.jars import LockSet, fetch
    from headgate.setup.broker import FOLDER, topics
    from headgate.setup.broker.running import start
    from headgate.setup.demo.project import lake
    from headgate.setup.demo.topic import PARTITIONS, TOPIC

    require_java()
    print("a Kafka broker starts …", file=sys.stderr)
    fetch(LockSet.KAFKA)
    with start(lake(folder) / FOLDER) as broker:
        topics.create(broker.servers, TOPIC, PARTITIONS)
        yield broker.servers


def _declare(folder: Path, example: str, servers: str | None) -> tuple[Pipeline, Layout]:
    from headgate.cli import declaration
    from headgate.declaration.load import load
    from headgate.setup.demo import project

    declared = load(project.make(folder, declaration.example(example), servers))
    return declared, Layout.of(str(project.lake(folder)), declared.name)


def _run(
    declared: Pipeline,
    layout: Layout,
    root: str,
    deliver: Deliver,
    events: int,
    seed: int,
    json: bool,
) -> tuple[float | None, Held | None]:
    """Feed and drive the pipeline until all is processed. Returns the seconds until gold had its
    first row, and the version of gold that was held."""
    from headgate.cli.demo.screen import demo_screen
    from headgate.cli.demo.verb import HoldAndRelease
    from headgate.cli.driving import drive, jars_for, require_java
    from headgate.cli.log_file import divert
    from headgate.setup.demo.feeding import Feeder
    from headgate.setup.demo.generator import TABLE
    from headgate.supervision.logs import spark_log

    require_java()
    jars = jars_for(declared)
    divert(spark_log(layout, "fused"))
    from headgate.driver.driver import Driver
    from headgate.driver.task import Task

    def stop_driver() -> None:
        driver.stop()

    def finish() -> None:
        driver.finish()

    is_gated = declared.gold[TABLE].suite is not None and events > 1
    feeder = Feeder(deliver, events - is_gated, seed, stop_driver)
    held = HoldAndRelease(layout, deliver, feeder, finish) if is_gated else None
    began = psutil.Process().create_time()
    first_gold: list[float] = []
    cores = os.cpu_count() or 2
    task = Task(declared, root, drain=True, cores=cores, jars=jars)
    with demo_screen(console(stderr=json), declared, layout, events) as (show, say):

        def watch(progress: JobProgress) -> None:
            gold = [t for name, t in progress.totals.items() if kind_of(name) == GOLD]
            if not first_gold and any(total.get("folded") for total in gold):
                first_gold.append(round(time.time() - began, 1))
            if feeder.ingested(progress.read):
                (held.begin if held else finish)()
            show(progress)

        driver = Driver(task, watch, say)
        feeder.start()
        drive(driver)
    for each in (feeder, held):
        if each is not None and each.failure is not None:
            raise each.failure
    return (first_gold[0] if first_gold else None), (held.found if held else None)


BY = "the demo"
REASON = "a single bid by fax"
POLL = 0.1  # seconds
PATIENCE = 120.0
"""The demo continues after so many seconds in which no hold begins, or the hold does not end."""


@dataclass(frozen=True)
class Held:
    """The hold of a version, its release, and the seconds until the table was no longer held."""

    hold: Hold
    given: Release
    seconds: float


class HoldAndRelease(threading.Thread):
    """Delivers an outlier after all slices of the feeder, waits until gold is held, and releases
    it. Calls ``on_end`` in any case. ``found`` is None if nothing was held; ``failure`` is the
    error that ended the thread, if any."""

    def __init__(
        self, layout: Layout, deliver: Deliver, feeder: Feeder, on_end: Callable[[], None]
    ) -> None:
        super().__init__(name="held version", daemon=True)
        self.found: Held | None = None
        self.failure: Exception | None = None
        self._layout, self._deliver = layout, deliver
        self._feeder, self._on_end = feeder, on_end

    def begin(self) -> None:
        """Start the thread. Later calls do nothing."""
        if self.ident is None:
            self.start()

    def run(self) -> None:
        try:
            self._feeder.join()
            self._deliver(len(self._feeder.delivered), outlier(self._feeder.delivered[-1][1]))
            if self._until(is_held=True) and (hold := documents.hold_reason(self._layout, TABLE)):
                self._release(hold)
        except Exception as error:
            self.failure = error
        finally:
            self._on_end()

    def _release(self, hold: Hold) -> None:
        given = hold.release(BY, REASON, datetime.now(UTC))
        documents.release(self._layout, TABLE, given)
        began = time.monotonic()
        if self._until(is_held=False):
            self.found = Held(hold, given, time.monotonic() - began)

    def _until(self, *, is_held: bool) -> bool:
        """Wait until the table is held, or is not held. False if this takes too long."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if (documents.hold_reason(self._layout, TABLE) is not None) == is_held:
                return True
            time.sleep(POLL)
        return False
