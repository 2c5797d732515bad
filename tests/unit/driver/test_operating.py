"""Requests that a driver takes in, above all replays that were decided on just before the driver
was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.driver.operating import finish_replays, take_in_requests
from headgate.driver.task import RebuildRequest
from headgate.flow.operations.carrying_out import REJECTION
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.requests import LoadRequest, loads_of
from headgate.history.replay.requests import ReplayDocument, request_replay
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.requests import (
    Request,
    remove_request,
    send_request,
    waiting_requests,
)
from headgate.lake.tables.decisions import LOAD, LOAD_CHANGE, REPLAY
from tests.support.fake_stages import ArrowBronze, Record, without_spark
from tests.support.lake import Lake, declared
from tests.support.several_sources import TWO, ingest, land


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with without_spark():
        lake = Lake(declared(tmp_path, TWO), tmp_path / "lake")
        for source in ("orders", "clicks"):
            land(lake, source, [Record()])
            ingest(lake, source)
        lake.catch_up()
        yield lake


@pytest.fixture(autouse=True)
def _without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay is a batch without rows: the fake stages have no corrected copies."""

    def replay(stage: ArrowBronze, _: Any, decide: Callable[[], int], now: datetime) -> Any:
        held = stage.refresh()
        state = replace(held.advanced_to(held.n + 1, now), operation=decide())
        return stage.table.commit(state.counting({}))

    monkeypatch.setattr(ArrowBronze, "replay", replay, raising=False)


@pytest.fixture
def request_(lake: Lake) -> Request:
    return ask(lake)


def ask(lake: Lake) -> Request:
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


def finish(lake: Lake) -> None:
    finish_replays(lake.layout, lake.runtime, lake.clock, lambda _: None)


def batch(lake: Lake) -> int:
    return lake.runtime.bronze["orders"].refresh().n


def is_requested(lake: Lake) -> bool:
    return bool(waiting_requests(lake.layout))


def take_in(lake: Lake) -> str:
    said = list[str]()
    take_in_requests(lake.layout, lake.runtime, lake.clock, said.append)
    return "; ".join(said)


def test_it_is_carried_out_by_the_next_driver(lake: Lake, request_: Request) -> None:
    number, n = decide(lake, request_), batch(lake)
    finish(lake)
    assert (replays(lake), batch(lake)) == ([number], n + 1)
    assert not is_requested(lake)


def test_it_is_carried_out_before_a_batch_while_another_source_is_rebuilt(
    lake: Lake, request_: Request
) -> None:
    """Requests wait during the rebuild, but the next batch would count as that of the replay."""
    number = decide(lake, request_)
    lake.anew = RebuildRequest(tables=("bronze/clicks",))
    lake.start()
    finish(lake)
    assert lake.runtime.bronze["orders"].refresh().operation == number
    assert not is_requested(lake)


def test_it_waits_while_its_own_bronze_is_rebuilt(lake: Lake, request_: Request) -> None:
    """The publication takes it out of force."""
    decide(lake, request_)
    lake.anew = RebuildRequest(tables=("bronze/orders",))
    lake.start()
    finish(lake)
    assert (batch(lake), is_requested(lake)) == (0, True)


def test_it_is_void_if_bronze_has_gone_back_since(lake: Lake, request_: Request) -> None:
    """Its batch would be ingested, but no table would know that it contains corrected copies."""
    lake.clock()
    remove_request(lake.layout, request_)
    savepoint = lake.savepoint()
    request = ask(lake)
    decide(lake, request)
    lake.restore(savepoint, reread=True)
    lake.start()
    finish(lake)
    n = batch(lake)
    assert "void" in take_in(lake)
    assert (batch(lake), replays(lake), is_requested(lake)) == (n, [], False)


def test_it_is_left_out_if_a_person_has_taken_it_back(lake: Lake, request_: Request) -> None:
    """Else the next batch would count as its batch."""
    decide(lake, request_)
    remove_request(lake.layout, request_)
    finish(lake)
    assert replays(lake) == []


def test_one_that_bronze_has_stays(lake: Lake, request_: Request) -> None:
    number = decide(lake, request_)
    finish(lake)
    n = batch(lake)
    finish(lake)
    assert (replays(lake), batch(lake)) == ([number], n)


def test_one_that_is_taken_back_while_it_is_read_is_not_decided(
    lake: Lake, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay: Any = vars(ArrowBronze)["replay"]

    def cancelled(stage: ArrowBronze, *given: Any) -> Any:
        remove_request(lake.layout, request_)
        return replay(stage, *given)

    monkeypatch.setattr(ArrowBronze, "replay", cancelled)
    n = batch(lake)
    assert "void" in take_in(lake)
    assert (batch(lake), replays(lake)) == (n, [])


def test_the_rejection_for_a_table_that_is_not_declared_any_more_is_dropped(lake: Lake) -> None:
    said = {"by": "a", "reason": "b", "at": lake.clock().isoformat()}
    document = {"table": "gone", "operation": 1, "generation": 0, **said}
    send_request(lake.layout, REJECTION, document, lake.clock())
    take_in(lake)
    assert not is_requested(lake)


def test_requests_wait_only_for_the_bronze_that_is_rebuilt(lake: Lake) -> None:
    """What is decided about the tables of that source meanwhile would be lost: the publication of
    the rebuild takes it out of force."""
    lake.anew = RebuildRequest(tables=("bronze/clicks",))
    lake.start()
    lake.anew = RebuildRequest()
    now = lake.clock()
    load = LoadRequest("load", "clicks", LoadPlan({}, {"0": 1}, "a test", "bytes"), "why", now)
    send_request(lake.layout, LOAD, load.document(), now, load.id)
    pause = {"load": load.id, "changes": {"wish": "paused"}}
    send_request(lake.layout, LOAD_CHANGE, pause, lake.clock())
    send_request(lake.layout, "drain", {}, lake.clock())
    everything: dict[str, Any] = {"from": None, "to": None, "keys": {}}
    for name in ("clicks", "orders"):
        replay = {"table": f"{name}_per_minute", **everything}
        send_request(lake.layout, "late_replay", replay, lake.clock())
        said = {"by": "a", "reason": "b", "at": now.isoformat()}
        rejection = {"table": f"{name}_per_minute", "operation": 9, "generation": 0, **said}
        send_request(lake.layout, REJECTION, rejection, lake.clock())
    ask(lake)
    take_in(lake)
    waiting = [(each.kind, each.document.get("table")) for each in waiting_requests(lake.layout)]
    of_clicks = [("late_replay", "clicks_per_minute"), (REJECTION, "clicks_per_minute")]
    assert waiting == [(LOAD, None), (LOAD_CHANGE, None), ("drain", None), *of_clicks]
    lake.catch_up()
    assert lake.runtime.table("gold/orders_per_minute").refresh().operation > 0
    lake.list_new("clicks")
    lake.ingest(source="clicks")
    for _ in range(2):
        lake.catch_up()
    assert lake.runtime.rebuild is None
    take_in(lake)
    assert not is_requested(lake)
    lake.catch_up()
    first, drain, last = (each.number for each in lake.operations("orders"))
    assert [each.number for each in lake.operations("clicks")] == [drain, last]
    assert lake.runtime.table("gold/orders_per_minute").refresh().operation == drain > first
    assert lake.runtime.table("gold/clicks_per_minute").refresh().operation == last
    (load_,) = loads_of(lake.decisions())
    assert (load_.source, load_.wish) == ("clicks", "paused")
    assert by_id(lake.layout, lake.pipeline).findings == ()
