"""When the events of final hours and days are emitted, over a small pipeline's tables."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from airflow.sdk import Variable
from airflow.sdk.exceptions import AirflowSkipException, TaskDeferred

from headgate.airflow import gold_asset, gold_days
from headgate.airflow.operators.final_periods import (
    AwaitFinalPeriods,
    EmitFinalPeriods,
    last_progress,
    remembered,
)
from headgate.airflow.triggers.final_periods_trigger import FinalPeriodsTrigger
from headgate.airflow.triggers.gold_final_trigger import GoldFinalTrigger
from headgate.commands import pipeline_command
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import keep_declaration
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.final_periods.periods import HOUR
from headgate.insight.final_periods.progress import MOST, Emitted, TableVersion
from headgate.insight.final_periods.rows import FinalRows
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.dags.test_gold_final import NOON, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def position(place: Place, **more: Any) -> TableVersion:
    """The position of the table now."""
    declared = load(place.file)
    found = FinalRows(place.lake.layout, declared, "per_minute").position()
    assert found is not None
    return replace(found, **more)


def known(
    done: TableVersion | None, table: str = "per_minute", period: str = "hour"
) -> dict[str, Any]:
    progress = Emitted(1, "id", done).encode() if done else None
    return {"table": table, "period": period, "progress": progress}


def trigger(place: Place, **emitted: dict[str, Any]) -> FinalPeriodsTrigger:
    return FinalPeriodsTrigger(
        file=str(place.file),
        root=str(place.root),
        emitted=emitted or {"hours": known(None)},
        interval=0.01,
    )


def reach(place: Place, time: datetime) -> None:
    """Commit a batch with which the table is final up to a time."""
    place.ingest(watermark=commit_time(time + timedelta(minutes=5)))


def test_an_hour_may_be_due_when_its_lateness_has_passed(place: Place) -> None:
    assert trigger(place).found() == []
    reach(place, NOON - timedelta(minutes=1))
    assert trigger(place).found() == ["hours"]
    about = {"hours": known(position(place)), "days": known(position(place), period="day")}
    assert trigger(place, **about).found() == []
    reach(place, NOON)
    assert trigger(place, **about).found() == ["hours"]
    reach(place, NOON + timedelta(hours=12))
    assert trigger(place, **about).found() == ["hours", "days"]


def test_what_is_left_of_a_long_report_is_due(place: Place) -> None:
    reach(place, NOON)
    done = position(place)
    left = Emitted(2, "id", done, replace(done, version=9), NOON)
    about = {"table": "per_minute", "period": "hour", "progress": left.encode()}
    assert trigger(place, hours=about).found() == ["hours"]


def test_it_fires_when_something_may_be_due_and_the_deferral_has_settled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FinalPeriodsTrigger, "SETTLES", 1.0)
    reach(place, NOON)
    began = time.monotonic()

    async def fired() -> Any:
        events = trigger(place, hours=known(position(place))).run()
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        reach(place, NOON + timedelta(hours=1))
        return (await asyncio.wait_for(waiting, 10)).payload

    assert asyncio.run(fired()) == {"due": ["hours"]}
    assert time.monotonic() - began >= 1.0


def test_it_can_be_made_again_elsewhere(place: Place) -> None:
    path, kept = trigger(place).serialize()
    assert path == "headgate.airflow.triggers.final_periods_trigger.FinalPeriodsTrigger"
    assert json.loads(json.dumps(kept)) == kept
    assert FinalPeriodsTrigger(**kept).serialize() == (path, kept)


def test_a_table_that_nobody_declares_delays_no_other(place: Place) -> None:
    waiting = trigger(place, removed=known(None, "removed"), hours=known(None))
    assert waiting.found() is None
    reach(place, NOON)
    assert waiting.found() == ["hours"]


def test_a_damaged_table_delays_no_other(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    text = place.file.read_text()
    table = text[text.index("  per_minute:") :]
    place.file.write_text(text + table.replace("per_minute", "damaged"))
    reach(place, NOON)
    made = Table(place.lake.layout.storage, "gold/damaged", pipeline="tiny")
    columns = pa.schema([("time", pa.timestamp("us", "UTC")), ("final", pa.bool_())])
    made.create(columns, load(place.file).definitions[made.name], time_column="time")
    made.commit(made.refresh().advanced_to(1, NOON, GoldPayload(commit_time(NOON))))
    waiting = trigger(place, damaged=known(None, "damaged"), hours=known(None))
    assert waiting.found() == ["damaged", "hours"]
    max(Path(made.log.uri("_delta_log")).glob("*.json")).write_text("{nonsense")
    assert waiting.found() == ["hours"]
    assert f"headgate repair {place.file} --root {place.root}" in capsys.readouterr().out


def test_a_pipeline_that_cannot_be_read_is_told_with_its_own_commands(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A triggerer waits for many pipelines."""

    def fails(_: object) -> None:
        raise HeadgateError("damaged", pipeline_command("repair"))

    monkeypatch.setattr(FinalPeriodsTrigger, "found", fails)
    monkeypatch.setattr(GoldFinalTrigger, "is_final", fails)

    async def wait(waiting: FinalPeriodsTrigger | GoldFinalTrigger) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(anext(waiting.run()), 3.0)

    for each in (trigger(place), place.trigger(NOON)):
        asyncio.run(wait(each))
        assert f"headgate repair {place.file} --root {place.root}" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_ends_when_its_tables_are_no_longer_those_of_the_declaration(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends only after Airflow has had time to read the changed declaration."""
    monkeypatch.setattr(FinalPeriodsTrigger, "SETTLES", 0.0)

    reach(place, NOON)
    waiting_for = trigger(place, removed=known(None, "removed"), hours=known(position(place)))

    async def fired() -> Any:
        waiting = asyncio.ensure_future(anext(waiting_for.run()))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        monkeypatch.setattr(FinalPeriodsTrigger, "RENEWS", 0.0)
        return (await asyncio.wait_for(waiting, 10)).payload

    assert asyncio.run(fired()) == {"due": []}


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


def number(events: Events) -> int | None:
    found = last_progress(cast(Any, {"inlet_events": {ASSET: events}}), ASSET)
    return found.number if found else None


def report(number: int, at: datetime = NOON) -> Event:
    """An event with the progress of a report."""
    return Event({"progress": Emitted(number, "id", None).encode()}, at)


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
    def known(*events: Event) -> int | None:
        found = remembered(cast(Any, {"inlet_events": {ASSET: Events(*events)}}), ASSET)
        return found.number if found else None

    assert known() is None
    assert known(*by_hand(1)) is None
    assert variables == {}
    assert known(report(1)) == 1
    assert known() == 1
    assert known(report(2)) == 2
    assert known(report(1)) == 2, "only old events are left"
    assert variables.keys() == {"tiny.gold.per_minute.emitted"}


def test_progress_is_read_from_the_events_of_the_asset() -> None:
    assert number(Events()) is None
    assert number(Events(*by_hand(2))) is None
    assert number(Events(report(4, NOON - timedelta(hours=1)), report(5), *by_hand(2))) == 5
    assert number(Events(*[report(n) for n in (3, 5, 4)])) == 5, "events of the same time"


@pytest.mark.parametrize("count", [24, 49, 50, 51, 300])
@pytest.mark.parametrize("apart", [timedelta(seconds=1), timedelta(0)])
def test_events_that_were_created_by_hand_hide_none(count: int, apart: timedelta) -> None:
    before = NOON - timedelta(seconds=1)
    assert number(Events(report(3, before), *by_hand(count, apart))) == 3
    assert number(Events(*by_hand(count, apart))) is None


def test_no_more_events_are_read_than_are_needed() -> None:
    events = Events(*by_hand(1000), report(1, NOON + timedelta(days=1)))
    assert number(events) == 1
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


def gold(place: Place) -> Table:
    return Table(place.lake.layout.storage, "gold/per_minute", pipeline="tiny")


def windows(place: Place, *ends: datetime, **columns: pa.Array) -> None:
    """Commit final rows of gold whose windows end at these times."""
    table = gold(place)
    state = table.refresh().advanced_to(table.refresh().n + 1, NOON, table.state.payload)
    rows = pa.table(
        {
            "window_start": [end - timedelta(minutes=1) for end in ends],
            "window_end": list(ends),
            "events": [1] * len(ends),
            "time": list(ends),
            **columns,
        }
    )
    staged = stage_arrow(table, state, rows, time_column="time")
    table.commit(state, add=tuple(replace(f, partition={"final": "true"}) for f in staged))


@dataclass
class Scheduler:
    """Runs the task that waits and the one that emits hours, as Airflow does."""

    place: Place
    events: list[Event] = field(default_factory=list)

    @property
    def files(self) -> dict[str, Any]:
        return {"file": str(self.place.file), "root": str(self.place.root), "name": "tiny"}

    @property
    def read(self) -> dict[Any, Events]:
        return {ASSET: Events(*self.events), gold_days("tiny", "per_minute"): Events()}

    def run(self) -> list[str] | None:
        """The keys that one run emits; None if it waits."""
        wait = AwaitFinalPeriods(task_id="wait", tables=["per_minute"], **self.files)
        context: dict[str, Any] = {"inlet_events": self.read}
        try:
            due = wait.execute(cast(Any, context))
        except TaskDeferred:
            return None
        return self.emit(due)

    def emit(self, due: list[str]) -> list[str]:
        """The keys that are emitted, if ``due`` is what the task that waits has returned."""
        emit = EmitFinalPeriods(
            task_id="per_minute", table="per_minute", period="hour", waiting="wait", **self.files
        )
        outlet = Outlet()
        context: dict[str, Any] = {"inlet_events": self.read}
        context |= {"ti": Pulled(due), "outlet_events": {ASSET: outlet}}
        with suppress(AirflowSkipException):
            emit.execute(cast(Any, context))
        at = NOON + timedelta(seconds=len(self.events))
        self.events += [Event(outlet.extra, at) for _ in outlet.keys]
        return outlet.keys


def test_five_thousand_empty_hours_are_no_event(place: Place) -> None:
    scheduler, later = Scheduler(place), NOON + timedelta(hours=5000)
    windows(place, NOON)
    reach(place, NOON)
    assert scheduler.run() == ["2026-05-04T11:00:00"]
    windows(place, NOON + timedelta(minutes=90), later)
    reach(place, later)
    assert scheduler.run() == ["2026-05-04T13:00:00", HOUR.key(later - HOUR.length)]
    assert not scheduler.run()
    del scheduler.events[:]  # airflow db clean
    assert not scheduler.run()


def test_many_hours_are_emitted_in_reports_of_limited_size(place: Place) -> None:
    scheduler = Scheduler(place)
    windows(place, NOON)
    reach(place, NOON)
    assert scheduler.run() == ["2026-05-04T11:00:00"]
    ends = [NOON + timedelta(hours=hour) for hour in range(1, 2 * MOST + 2)]
    windows(place, *ends)
    reach(place, ends[-1])
    reports = [scheduler.run() for _ in range(3)]
    assert [len(keys or ()) for keys in reports] == [MOST, MOST, 1]
    assert [key for keys in reports for key in keys or ()] == [
        HOUR.key(end - HOUR.length) for end in ends
    ]


def test_a_table_that_replaces_another_one_begins_again(place: Place) -> None:
    """Also while it is final up to an earlier time than the other one was."""
    scheduler = Scheduler(place)
    windows(place, NOON - timedelta(hours=9), NOON - timedelta(hours=3))
    reach(place, NOON)
    of_another = Emitted(7, "another id", position(place, final_up_to="2026-06-01T00:00:00+00:00"))
    scheduler.events.append(Event({"progress": of_another.encode()}))
    assert scheduler.run() == ["2026-05-04T08:00:00"]
    assert number(Events(*scheduler.events)) == 8
    windows(place, NOON + timedelta(hours=1))
    reach(place, NOON + timedelta(hours=1))
    assert scheduler.run() == ["2026-05-04T12:00:00"]


def operate(place: Place) -> None:
    """An operation removes all rows."""
    table = gold(place)
    held = table.refresh()
    state = replace(held.held("operation", 0), operation=held.operation + 1)
    table.commit(state, remove=live_files(table.handle))


def test_a_field_that_is_added_to_a_struct_changes_no_row(place: Place) -> None:
    scheduler, integer = Scheduler(place), pa.int64()
    wider = pa.struct([("a", integer), ("b", integer)])
    windows(place, NOON, s=pa.array([{"a": 1}]))
    reach(place, NOON)
    assert scheduler.run() == ["2026-05-04T11:00:00"]
    operate(place)
    windows(place, NOON, s=pa.array([{"a": 1, "b": None}], wider))
    assert not scheduler.run()
    operate(place)
    windows(place, NOON, s=pa.array([{"a": 1, "b": 2}], wider))
    assert scheduler.run() == ["2026-05-04T11:00:00"]


def test_hours_before_1970_are_emitted(place: Place) -> None:
    scheduler, zero = Scheduler(place), datetime(1970, 1, 1, tzinfo=UTC)
    windows(place, zero - timedelta(hours=3))
    reach(place, zero - timedelta(hours=3))
    assert scheduler.run() == ["1969-12-31T20:00:00"]
    windows(place, *(zero - timedelta(minutes=minutes) for minutes in (120, 90, 0)))
    reach(place, zero)
    assert scheduler.run() == [f"1969-12-31T{hour}:00:00" for hour in (21, 22, 23)]


def test_nothing_is_emitted_while_a_restored_table_is_behind(place: Place) -> None:
    """Neither what a run had found before the restore, nor what is left of a long report."""
    scheduler = Scheduler(place)
    windows(place, NOON)
    reach(place, NOON)
    scheduler.run()
    ends = [NOON + timedelta(hours=hour) for hour in range(1, MOST + 2)]
    windows(place, *ends)
    reach(place, ends[-1])
    assert len(scheduler.run() or ()) == MOST
    reach(place, NOON)
    assert trigger(place, hours=progress_of(scheduler.events)).found() == []
    assert scheduler.emit([ASSET.name]) == []
    reach(place, ends[-1])
    assert scheduler.run() == [HOUR.key(ends[-1] - HOUR.length)]
    reach(place, NOON + timedelta(hours=3))
    assert scheduler.emit([ASSET.name]) == []
    reach(place, ends[-1])
    assert not scheduler.run()


def progress_of(events: list[Event]) -> dict[str, Any]:
    (newest, *_) = [each.extra for each in reversed(events)]
    assert newest is not None
    return {"table": "per_minute", "period": "hour", **newest}


def test_a_lateness_that_is_not_deployed_makes_nothing_final(place: Place) -> None:
    """The file is edited while the stream runs, and put back. No hour is skipped."""
    text, scheduler = place.file.read_text(), Scheduler(place)
    keep_declaration(place.lake.layout, load(place.file))
    windows(place, NOON)
    reach(place, NOON)
    assert scheduler.run() == ["2026-05-04T11:00:00"]
    place.file.write_text(text.replace("lateness: 5 minutes", "lateness: 0 seconds"))
    windows(place, NOON + timedelta(minutes=30))
    reach(place, NOON + timedelta(minutes=58))
    assert not scheduler.run()
    assert edited_final(place) == NOON + timedelta(minutes=58)
    windows(place, NOON + timedelta(hours=1))
    reach(place, NOON + timedelta(hours=1))
    assert scheduler.run() == ["2026-05-04T12:00:00"]


def test_a_table_of_an_unknown_declaration_is_not_final(place: Place) -> None:
    reach(place, NOON)
    text = place.file.read_text()
    place.file.write_text(text.replace("lateness: 5 minutes", "lateness: 0 seconds"))
    assert trigger(place).found() == []
    assert edited_final(place) is None


def edited_final(place: Place) -> datetime | None:
    """The time up to which the table is final, by the file as it is now."""
    return final_up_to(place.lake.layout, load(place.file), "per_minute")
