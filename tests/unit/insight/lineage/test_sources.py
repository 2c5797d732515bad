"""Lineage of a pipeline with two sources: an hour of one waits for no other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.insight.lineage import hours
from headgate.insight.lineage.datasets import table_name
from headgate.insight.lineage.events import About
from headgate.insight.lineage.hours import final_hour, record_sent, sent_up_to
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources

two_sources = _two_sources

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = (NOON, NOON + timedelta(hours=1))


def test_an_hour_of_a_source_has_its_own_tables(two_sources: Lake) -> None:
    layout = two_sources.layout
    about = About(two_sources.pipeline, layout, "test", NOON)
    found = {name: list(about.of_hour(name, HOUR)) for name in ("orders", "clicks")}
    jobs = {name: [event.job.name for event in events] for name, events in found.items()}
    assert jobs["clicks"][1::2] == [
        "shop.bronze.clicks",
        "shop.silver.seen",
        "shop.gold.clicks_per_minute",
        "shop",
    ]
    inputs = {e.job.name: [i.name for i in e.inputs or ()] for e in found["clicks"] if e.inputs}
    folder = str(two_sources.root.parent / "landing/clicks")
    assert inputs["shop.bronze.clicks"] == [folder]
    assert inputs["shop.gold.clicks_per_minute"] == [table_name(layout, "silver/seen")[1]]
    runs = [{event.run.runId for event in events} for events in found.values()]
    assert not runs[0] & runs[1], "the runs of one hour of two sources are not the same"


def test_the_final_hour_is_that_of_a_source(two_sources: Lake) -> None:
    layout, declared = two_sources.layout, two_sources.pipeline
    assert final_hour(layout, declared, "clicks") is None
    gold = two_sources.runtime.table("gold/clicks_per_minute")
    held, final = gold.refresh(), NOON + timedelta(hours=2)
    watermark = commit_time(final + timedelta(minutes=10))
    gold.commit(held.advanced_to(held.n, NOON, GoldPayload(watermark)))
    assert final_hour(layout, declared, "clicks") == final
    assert final_hour(layout, declared, "orders") is None
    assert sent_up_to(layout) == {}
    record_sent(layout, "clicks", final)
    record_sent(layout, "orders", NOON)
    assert hours.sent_up_to(layout) == {"clicks": final, "orders": NOON}
