"""The sensor of final windows, over a small pipeline's tables."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from headgate.airflow import GoldFinalSensor
from headgate.airflow.triggers.gold_final_trigger import GoldFinalTrigger
from headgate.commands import pipeline_command, rendered
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.insight.final_periods.finality import final_up_to
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


class Place:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "tiny.yml"
        self.file.write_text(DECLARATION.replace("lateness: 0 seconds", "lateness: 5 minutes"))
        self.root = folder / "lake"
        self.lake = Lake(self.root, load(self.file))

    def ingest(self, watermark: int, closed_through: int | None = None) -> None:
        """Commit a batch of gold that has processed a watermark, or the end of an operation."""
        table = Table(self.lake.layout.storage, "gold/per_minute", pipeline="tiny")
        held = table.refresh()
        table.commit(held.advanced_to(held.n + 1, NOON, GoldPayload(watermark, closed_through)))

    @property
    def final(self) -> datetime | None:
        return final_up_to(self.lake.layout, self.lake.pipeline, "per_minute")

    def trigger(self, up_to: datetime) -> GoldFinalTrigger:
        return GoldFinalTrigger(
            file=str(self.file),
            root=str(self.root),
            table="per_minute",
            up_to=up_to.isoformat(),
            interval=0.01,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_window_is_final_when_its_lateness_has_passed(place: Place) -> None:
    assert place.final is None
    place.ingest(watermark=commit_time(NOON))
    assert place.final == NOON - timedelta(minutes=5)


def test_windows_that_an_operation_closed_are_final(place: Place) -> None:
    place.ingest(watermark=commit_time(NOON), closed_through=commit_time(NOON))
    assert place.final == NOON


def test_a_table_that_nobody_declares(place: Place) -> None:
    with pytest.raises(HeadgateError, match=r"no gold table nothing \(it has: per_minute\)"):
        final_up_to(place.lake.layout, place.lake.pipeline, "nothing")


async def _next(trigger: GoldFinalTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("it never fired")


def test_it_fires_when_the_table_has_come_so_far_and_the_deferral_has_settled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GoldFinalTrigger, "SETTLES", 1.0)
    began = time.monotonic()

    async def wait() -> tuple[bool, Any]:
        waiting = asyncio.create_task(_next(place.trigger(NOON)))
        place.ingest(watermark=commit_time(NOON + timedelta(minutes=4)))
        await asyncio.sleep(0.2)
        early = waiting.done()
        place.ingest(watermark=commit_time(NOON + timedelta(minutes=5)))
        return early, await asyncio.wait_for(waiting, 20)

    assert asyncio.run(wait()) == (False, {"final_up_to": NOON.isoformat()})
    assert time.monotonic() - began >= 1.0


def test_it_can_be_made_again_elsewhere(place: Place) -> None:
    path, kept = place.trigger(NOON).serialize()
    assert path == "headgate.airflow.triggers.gold_final_trigger.GoldFinalTrigger"
    assert GoldFinalTrigger(**kept).serialize() == (path, kept)


@pytest.mark.parametrize("minutes", [4, 5])
def test_no_worker_waits(place: Place, minutes: int) -> None:
    place.ingest(watermark=commit_time(NOON + timedelta(minutes=minutes)))
    sensor = GoldFinalSensor(
        task_id="final",
        file=str(place.file),
        root=str(place.root),
        table="per_minute",
        up_to=str(NOON),
    )
    if minutes < 5:
        with pytest.raises(TaskDeferred):
            sensor.execute({})
    else:
        sensor.execute({})


def test_its_errors_have_commands_for_its_pipeline(place: Place) -> None:
    root = str(place.root)
    sensor = GoldFinalSensor(
        task_id="f", file=str(place.file), root=root, table="x", up_to=str(NOON)
    )
    sensor.pre_execute({})
    assert f" repair {place.file} --root {root}" in rendered(pipeline_command("repair"))


@pytest.mark.parametrize("up_to", ["yesterday", "2026-05-04", "2026-05-04T12:00:00", ""])
def test_a_time_that_is_none(place: Place, up_to: str) -> None:
    with pytest.raises(HeadgateError, match="up_to") as error:
        GoldFinalTrigger(file="f", root="r", table="t", up_to=up_to, interval=1)
    assert "{{ data_interval_end }}" in error.value.remedy
