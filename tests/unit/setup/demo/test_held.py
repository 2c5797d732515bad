"""The demo's held version: an outlier, a hold, a release."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.demo.verb import HoldAndRelease
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.lake.storage.layout import Layout
from headgate.setup.demo.feeding import Feeder
from headgate.setup.demo.generator import TABLE, Slice
from tests.support.waiting import wait_until

PATIENCE = 30


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path), "auctions")


def test_the_outlier_comes_last_and_is_released_once_it_is_held(layout: Layout) -> None:
    feeder = Feeder(lambda number, part: None, 10, 7)
    at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    taken: list[tuple[int, Slice]] = []
    ended = threading.Event()

    def driver() -> None:
        documents.hold(layout, Hold(TABLE, 1, 2, at, at, ()))
        wait_until(lambda: documents.released(layout, TABLE), "no release", PATIENCE)
        documents.let_go(layout, TABLE)

    def deliver(number: int, part: Slice) -> None:
        taken.append((number, part))
        threading.Thread(target=driver, daemon=True).start()

    held = HoldAndRelease(layout, deliver, feeder, ended.set)
    feeder.start()
    held.begin()
    held.begin()
    assert ended.wait(PATIENCE)
    assert (held.found is not None, held.failure) == (True, None)
    released = documents.released(layout, TABLE)
    assert released is not None
    assert released.upto == 2
    ((number, part),) = taken
    assert number == len(feeder.delivered) == 1
    (bid,) = map(json.loads, part.lines)
    late = feeder.delivered[0][1] - datetime.fromisoformat(bid["event_time"])
    assert late < timedelta(milliseconds=1)


def test_an_outlier_that_cannot_be_delivered_ends_the_demo(layout: Layout) -> None:
    def deliver(number: int, part: Slice) -> None:
        raise OSError("no space")

    feeder = Feeder(lambda number, part: None, 10, 7)
    ended = threading.Event()
    held = HoldAndRelease(layout, deliver, feeder, ended.set)
    feeder.start()
    held.begin()
    assert ended.wait(PATIENCE)
    assert (held.found, str(held.failure)) == (None, "no space")
