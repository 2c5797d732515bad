"""A replay that was decided on just before its driver was killed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.driver.operating import leave_out_cancelled
from headgate.history.replay.requests import ReplayDocument, request_replay
from headgate.lake.control.requests import Request, remove_request
from headgate.lake.tables.decisions import REPLAY
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake, declared
from tests.support.several_sources import TWO, ingest, land


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with without_spark():
        lake = Lake(declared(tmp_path, TWO), tmp_path / "lake")
        for source in ("orders", "clicks"):
            land(lake, source, [Record()])
            ingest(lake, source)
        yield lake


@pytest.fixture
def request_(lake: Lake) -> Request:
    document = ReplayDocument("orders", 0, 0, 1, "a test")
    return request_replay(lake.layout, "r1", document, pa.table({"value": [b""]}), lake.clock())


def decide(lake: Lake, request: Request) -> int:
    """Returns the number of the decision."""
    runtime = lake.runtime
    return runtime.decide(
        lambda position: runtime.control.append(
            REPLAY, request.document, position, lake.clock(), request=request.id
        )
    ).number


def replays(lake: Lake) -> list[int]:
    return [each.number for each in lake.runtime.control.refresh().replays_of("orders")]


def test_it_is_carried_out_by_the_next_driver(lake: Lake, request_: Request) -> None:
    number = decide(lake, request_)
    leave_out_cancelled(lake.layout, lake.runtime, lake.clock())
    assert replays(lake) == [number]


def test_it_is_left_out_if_a_person_has_taken_it_back(lake: Lake, request_: Request) -> None:
    """Else the next batch would count as its batch."""
    decide(lake, request_)
    remove_request(lake.layout, request_)
    leave_out_cancelled(lake.layout, lake.runtime, lake.clock())
    assert replays(lake) == []


def test_one_that_bronze_has_stays(lake: Lake, request_: Request) -> None:
    number = decide(lake, request_)
    bronze = lake.runtime.bronze["orders"].table
    held = bronze.refresh()
    done = replace(held.advanced_to(held.n + 1, lake.clock()), operation=number)
    bronze.commit(done.counting({}))
    remove_request(lake.layout, request_)
    leave_out_cancelled(lake.layout, lake.runtime, lake.clock())
    assert replays(lake) == [number]
