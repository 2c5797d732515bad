"""When an hour of gold is emitted to be final, over a small pipeline's tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.airflow import gold_asset
from headgate.airflow.operators.final_hours import last_emitted
from headgate.airflow.triggers.final_hours_trigger import FinalHoursTrigger
from headgate.errors import HeadgateError
from headgate.tables.state import commit_time
from tests.dags.test_gold_final import NOON, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def trigger(place: Place, emitted: datetime | None, table: str = "per_minute") -> FinalHoursTrigger:
    return FinalHoursTrigger(
        file=str(place.file),
        root=str(place.root),
        emitted={table: emitted.isoformat() if emitted else None},
        interval=0.01,
    )


def test_an_hour_is_news_when_its_lateness_has_passed(place: Place) -> None:
    assert trigger(place, None).news() == {}
    place.absorb(watermark=commit_time(NOON + timedelta(minutes=4)))
    assert trigger(place, NOON - timedelta(hours=1)).news() == {}
    place.absorb(watermark=commit_time(NOON + timedelta(minutes=5)))
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
        place.absorb(watermark=commit_time(NOON + timedelta(hours=1, minutes=5)))
        return (await asyncio.wait_for(waiting, 10)).payload

    assert asyncio.run(fired()) == {"per_minute": (NOON + timedelta(hours=1)).isoformat()}
    assert time.monotonic() - began >= 1.0


def test_a_table_that_nobody_declares(place: Place) -> None:
    with pytest.raises(HeadgateError, match="no gold table nothing"):
        trigger(place, None, "nothing").news()


@dataclass
class Event:
    extra: dict[str, Any] | None


class Events:
    """Of an asset, as Airflow gives them: chosen by order and number."""

    def __init__(self, *events: Event) -> None:
        self._events = events

    def ascending(self, newest_last: bool) -> Events:
        return self if newest_last else Events(*reversed(self._events))

    def limit(self, number: int) -> Events:
        return Events(*self._events[:number])

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)


def test_emitted_hours_are_read_from_the_events_of_the_asset() -> None:
    asset = gold_asset("tiny", "per_minute")

    def emitted(*events: Event) -> datetime | None:
        return last_emitted(cast(Any, {"inlet_events": {asset: Events(*events)}}), asset)

    by_hand = [Event(None), Event({})]
    assert emitted() is None
    assert emitted(*by_hand) is None
    before = Event({"final_up_to": (NOON - timedelta(hours=1)).isoformat()})
    assert emitted(before, Event({"final_up_to": NOON.isoformat()}), *by_hand) == NOON
