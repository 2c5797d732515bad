"""The time up to which a table is final, from the state of its last commit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.insight.final_periods.finality import final_at
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import State, commit_time

DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {path: landing, format: json}
    record: {event_time: {column: at}, schema: {at: timestamp}}
silver: {clean: {from: orders}}
gold:
  hours:
    from: clean
    window: {tumbling: 1 hour}
    measures: {rows: count(*)}
    allowed_lateness: 10 minutes
  days:
    from: hours
    window: {tumbling: 1 day}
    measures: {rows: sum(rows)}
    allowed_lateness: 20 minutes
"""
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    file = tmp_path_factory.mktemp("project") / "shop.yml"
    file.write_text(DECLARATION)
    return load(file)


def at(watermark: datetime | None, drained: datetime) -> State:
    """The state of a table after a drain."""
    reached = None if watermark is None else commit_time(watermark)
    return State(GoldPayload(watermark=reached, closed_through=commit_time(drained)))


def test_what_a_drain_has_closed_is_final(declared: Pipeline) -> None:
    midnight = NOON + timedelta(hours=12)
    for watermark in (None, NOON):
        assert final_at(declared.gold["hours"], at(watermark, midnight)) == midnight


def test_later_rows_may_correct_what_a_drain_has_closed_in_a_rollup(declared: Pipeline) -> None:
    days, midnight = declared.gold["days"], NOON + timedelta(hours=12)
    assert final_at(days, at(None, midnight)) is None
    for watermark in (NOON, midnight):
        assert final_at(days, at(watermark, midnight)) == watermark - timedelta(minutes=20)
