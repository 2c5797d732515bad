"""When the event of a final hour of gold is emitted, over a small pipeline's tables."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from airflow.sdk import Variable
from airflow.sdk.exceptions import TaskDeferred

from headgate.airflow import gold_asset
from headgate.airflow.operators.backfill import EmitRebuiltHours
from headgate.airflow.operators.final_hours import (
    AwaitFinalHours,
    EmitFinalHours,
    last_emitted,
    remembered,
)
from headgate.airflow.triggers.final_hours_trigger import FinalHoursTrigger
from headgate.airflow.triggers.gold_final_trigger import GoldFinalTrigger
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.tables.state import commit_time
from tests.dags.test_gold_final import NOON, Place
from tests.unit.backfill.test_noted import asked, carried_out, taken_in


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def trigger(place: Place, emitted: datetime | None, *tables: str) -> FinalHoursTrigger:
    last = emitted.isoformat() if emitted else None
    return FinalHoursTrigger(
        file=str(place.file),
        root=str(place.root),
        emitted=dict.fromkeys(tables or ["per_minute"], last),
        interval=0.01,
    )


def test_an_hour_is_news_when_its_lateness_has_passed(place: Place) -> None:
    assert trigger(place, None).news() == {}
    place.ingest(watermark=commit_time(NOON + timedelta(minutes=4)))
    assert trigger(place, NOON - timedelta(hours=1)).news() == {}
    place.ingest(watermark=commit_time(NOON + timedelta(minutes=5)))
    assert trigger(place, NOON - timedelta(hours=1)).news() == {"per_minute": NOON.isoformat()}
    assert trigger(place, None).news() == {"per_minute": NOON.isoformat()}
    assert trigger(place, NOON).news() == {}


def test_it_fires_when_there_is_news_and_the_deferral_has_settled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FinalHoursTrigger, "SETTLES", 1.0)
    began = time.monotonic()

    async def fired() -> Any:
        events = trigger(place, NOON).run()
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        place.ingest(watermark=commit_time(NOON + timedelta(hours=1, minutes=5)))
        return (await asyncio.wait_for(waiting, 10)).payload

    assert asyncio.run(fired()) == {"per_minute": (NOON + timedelta(hours=1)).isoformat()}
    assert time.monotonic() - began >= 1.0


def test_it_can_be_made_again_elsewhere(place: Place) -> None:
    path, kept = trigger(place, NOON).serialize()
    assert path == "headgate.airflow.triggers.final_hours_trigger.FinalHoursTrigger"
    assert kept == {
        "file": str(place.file),
        "root": str(place.root),
        "emitted": {"per_minute": NOON.isoformat()},
        "interval": 0.01,
    }
    assert FinalHoursTrigger(**kept).serialize() == (path, kept)


def test_a_table_that_nobody_declares_delays_no_other(place: Place) -> None:
    waiting = trigger(place, NOON, "removed", "per_minute")
    assert waiting.news() is None
    place.ingest(watermark=commit_time(NOON + timedelta(hours=1, minutes=5)))
    assert waiting.news() == {"per_minute": (NOON + timedelta(hours=1)).isoformat()}


def test_a_damaged_table_delays_no_other(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    text = place.file.read_text()
    table = text[text.index("  per_minute:") :]
    place.file.write_text(text + table.replace("per_minute", "damaged"))
    place.ingest(watermark=commit_time(NOON + timedelta(minutes=5)))
    gold = Path(place.lake.layout.storage.uri("gold"))
    shutil.copytree(gold / "per_minute", gold / "damaged")
    waiting = trigger(place, None, "damaged", "per_minute")
    assert waiting.news() == dict.fromkeys(("damaged", "per_minute"), NOON.isoformat())
    max(gold.glob("damaged/_delta_log/*.json")).write_text("{nonsense")
    assert waiting.news() == {"per_minute": NOON.isoformat()}
    assert f"headgate repair {place.file} --root {place.root}" in capsys.readouterr().out


def test_a_pipeline_that_cannot_be_read_is_told_with_its_own_commands(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A triggerer waits for many pipelines."""

    def fails(_: object) -> None:
        raise HeadgateError("damaged", pipeline_command("repair"))

    monkeypatch.setattr(FinalHoursTrigger, "news", fails)
    monkeypatch.setattr(GoldFinalTrigger, "is_final", fails)

    async def wait(waiting: FinalHoursTrigger | GoldFinalTrigger) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(waiting.run()), 3.0)

    for each in (trigger(place, None), place.trigger(NOON)):
        asyncio.run(wait(each))
        assert f"headgate repair {place.file} --root {place.root}" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_ends_when_its_tables_are_no_longer_those_of_the_declaration(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends only after Airflow has had time to read the changed declaration."""
    monkeypatch.setattr(FinalHoursTrigger, "SETTLES", 0.0)

    async def fired() -> Any:
        waiting = asyncio.ensure_future(anext(trigger(place, NOON, "removed", "per_minute").run()))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        monkeypatch.setattr(FinalHoursTrigger, "RENEWS", 0.0)
        return (await asyncio.wait_for(waiting, 10)).payload

    assert asyncio.run(fired()) == {}


@dataclass
class Event:
    extra: dict[str, Any] | None
    timestamp: datetime = NOON


class Events:
    """The events of an asset, with Airflow's interface: order, limit and time are set first, and
    the events are read when they are iterated."""

    def __init__(self, *events: Event) -> None:
        self._events = events
        self._newest_last, self._limit, self._before = True, len(events), "9999"
        self.read = 0

    def ascending(self, newest_last: bool) -> Events:
        self._newest_last = newest_last
        return self

    def limit(self, number: int) -> Events:
        self._limit = number
        return self

    def before(self, time: str) -> Events:
        self._before = time
        return self

    def __iter__(self) -> Iterator[Event]:
        found = [each for each in self._events if each.timestamp.isoformat() <= self._before]
        found.sort(key=lambda each: each.timestamp, reverse=not self._newest_last)
        self.read += len(found[: self._limit])
        return iter(found[: self._limit])


ASSET = gold_asset("tiny", "per_minute")


def emitted(events: Events) -> datetime | None:
    return last_emitted(cast(Any, {"inlet_events": {ASSET: events}}), ASSET)


def up_to(time: datetime, at: datetime = NOON) -> Event:
    """An event with the time up to which a table is final."""
    return Event({"final_up_to": time.isoformat()}, at)


def by_hand(number: int, apart: timedelta = timedelta(seconds=1)) -> list[Event]:
    return [Event([None, {}][n % 2], NOON + n * apart) for n in range(1, number + 1)]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Airflow's variables."""
    kept: dict[str, str] = {}

    def get(key: str, default: str | None) -> str | None:
        return kept.get(key, default)

    def put(key: str, value: str, description: str) -> None:
        kept[key] = value

    monkeypatch.setattr(Variable, "get", get)
    monkeypatch.setattr(Variable, "set", put)
    return kept


def test_what_was_emitted_is_known_after_its_events_were_removed(
    variables: dict[str, str],
) -> None:
    def known(*events: Event) -> datetime | None:
        return remembered(cast(Any, {"inlet_events": {ASSET: Events(*events)}}), ASSET)

    assert known() is None
    assert known(*by_hand(1)) is None
    assert variables == {}
    later = NOON + timedelta(hours=1)
    assert known(up_to(NOON)) == NOON
    assert known() == NOON
    assert known(up_to(later)) == later
    assert known(up_to(NOON)) == later, "only old events are left"
    assert variables == {"tiny.gold.per_minute.final_up_to": later.isoformat()}


def test_no_hour_is_skipped_after_events_were_removed(
    place: Place, variables: dict[str, str]
) -> None:
    variables["tiny.gold.per_minute.final_up_to"] = NOON.isoformat()
    files: dict[str, Any] = {"file": str(place.file), "root": str(place.root), "name": "tiny"}
    wait = AwaitFinalHours(task_id="wait", tables=["per_minute"], **files)
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute(cast(Any, {"inlet_events": {ASSET: Events()}}))
    assert cast(FinalHoursTrigger, deferred.value.trigger).emitted == {
        "per_minute": NOON.isoformat()
    }
    emit = EmitFinalHours(task_id="per_minute", table="per_minute", waiting="wait", **files)
    told, news = Outlet(), Pulled({"per_minute": (NOON + timedelta(hours=3)).isoformat()})
    context = {"ti": news, "inlet_events": {ASSET: Events()}, "outlet_events": {ASSET: told}}
    emit.execute(cast(Any, context))
    assert told.keys == [f"2026-05-04T{hour}:00:00" for hour in (12, 13, 14)]


def test_emitted_hours_are_read_from_the_events_of_the_asset() -> None:
    assert emitted(Events()) is None
    assert emitted(Events(*by_hand(2))) is None
    events = [up_to(NOON - timedelta(hours=1)), up_to(NOON), *by_hand(2)]
    assert emitted(Events(*events)) == NOON


@pytest.mark.parametrize("number", [24, 49, 50, 51, 300])
@pytest.mark.parametrize("apart", [timedelta(seconds=1), timedelta(0)])
def test_events_that_were_created_by_hand_hide_none(number: int, apart: timedelta) -> None:
    before = NOON - timedelta(seconds=1)
    assert emitted(Events(up_to(NOON, before), *by_hand(number, apart))) == NOON
    assert emitted(Events(*by_hand(number, apart))) is None


def test_no_more_events_are_read_than_are_needed() -> None:
    events = Events(*by_hand(1000), up_to(NOON, NOON + timedelta(days=1)))
    assert emitted(events) == NOON
    assert events.read < 100


@dataclass
class Outlet:
    extra: dict[str, Any] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def add_partitions(self, keys: list[str]) -> None:
        self.keys += keys


@dataclass
class Pulled:
    """A task instance whose upstream tasks have returned ``value``."""

    value: Any

    def xcom_pull(self, **_: Any) -> Any:
        return self.value


def test_rebuilt_hours_move_no_event_back(place: Place) -> None:
    """Rebuilt hours may be emitted after a newer event that they could not have read."""
    times = {"begin": (NOON - timedelta(days=1)).isoformat(), "end": NOON.isoformat()}
    files = {"file": str(place.file), "root": str(place.root)}
    about = {"table": "per_minute", "name": "tiny", **files}
    rebuilt = EmitRebuiltHours(task_id="again", **about, **times)
    again, before = Outlet(), up_to(NOON)
    for step in (asked, taken_in, carried_out):
        step(place.lake)
    context: dict[str, Any] = {"run_id": "1", "outlet_events": {ASSET: again}}
    rebuilt.execute(cast(Any, context))
    hours = [
        Event(again.extra, NOON + timedelta(minutes=1, seconds=n))
        for n, _ in enumerate(again.keys, 1)
    ]
    reached = NOON + timedelta(hours=2)
    events = Events(before, up_to(reached, NOON + timedelta(minutes=1)), *hours * 3)
    assert emitted(events) == reached
    emit, told = EmitFinalHours(task_id="per_minute", waiting="wait", **about), Outlet()
    news = Pulled({"per_minute": (reached + timedelta(hours=4)).isoformat()})
    context = {"ti": news, "inlet_events": {ASSET: events}, "outlet_events": {ASSET: told}}
    emit.execute(cast(Any, context))
    assert told.keys == [f"2026-05-04T{hour}:00:00" for hour in (14, 15, 16, 17)]
