"""Publications pause while the newest batches say that the input is broken."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import CircuitBreaker, Pipeline
from headgate.flow.publish import circuit_breaker
from headgate.flow.publish.circuit_breaker import Breaker, why_open
from headgate.insight.status.health import HealthContext, violations
from headgate.insight.status.limits import Limits
from headgate.lake.tables.decisions import REPLAY, position_of
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of
from tests.unit.insight.ledger.conftest import NOON, Lake, empty_lake

__all__ = ["empty_lake"]


@pytest.mark.parametrize(
    ("above", "below", "open_"),
    [
        (0.1, None, "clean: 11 of 100 records are refused (11.0%, limit 10.0%)"),
        (0.11, None, None),
        (0.11 - 1e-17, None, None),
        (None, 101, "100 records in the last 5 batches, fewer than 101"),
        (None, 100, None),
        (0.99, 1, None),
    ],
)
def test_shares_and_numbers(above: float | None, below: int | None, open_: str | None) -> None:
    counts = {"quarantined": 5, "rejected": 6, "silver": 80, "duplicate": 4, "filtered": 5}
    assert why_open(CircuitBreaker(above, below, 5), 100, {"clean": counts}) == open_


def test_records_and_items_have_shares_of_their_own() -> None:
    """Many items of the good records do not hide that half of the records are invalid."""
    counts = {"quarantined": 50, "exploded": 50, "items": 1000, "silver": 900, "rejected": 100}
    found = [why_open(CircuitBreaker(each, None, 5), 100, {"clean": counts}) for each in (0.4, 0.5)]
    assert found == ["clean: 50 of 100 records are refused (50.0%, limit 40.0%)", None]
    few = counts | {"quarantined": 0}
    said = "clean: 100 of 1,000 items are refused (10.0%, limit 9.0%)"
    assert why_open(CircuitBreaker(0.09, None, 5), 100, {"clean": few}) == said


def broken(lake: Lake, keys: str) -> Pipeline:
    file = lake.pipeline.file
    publish = 'publish:\n  finals: {from: gold.per_minute, kafka: {servers: "h:1", topic: t}}\n'
    file.write_text(f"{file.read_text()}{publish}circuit_breaker: {{{keys}}}\n")
    return load(file)


def deliver(lake: Lake, n: int, good: int, bad: int) -> None:
    read = {"read": good + bad, "duplicate": 0, "differing": 0, "corrected": 0}
    lake.commit("bronze/events", n, [], read)
    lake.commit("silver/good", n, [], {"silver": good, "quarantined": bad})


def test_it_opens_and_closes_by_the_newest_batches(empty_lake: Lake) -> None:
    lake = empty_lake
    pipeline = broken(lake, "refused_above: 20 %, batches: 2")
    assert Breaker(lake.layout, pipeline).why_open() is None
    deliver(lake, 1, 0, 10)
    assert Breaker(lake.layout, pipeline).why_open() is None  # there is only one batch so far
    deliver(lake, 2, 10, 0)
    assert (
        Breaker(lake.layout, pipeline).why_open()
        == "good: 10 of 20 records are refused (50.0%, limit 20.0%)"
    )
    (said,) = violations("breaker", at(lake, pipeline), Limits())
    assert said.startswith("publications pause: good: 10 of 20")
    deliver(lake, 3, 10, 1)
    assert Breaker(lake.layout, pipeline).why_open() is None
    assert violations("breaker", at(lake, pipeline), Limits()) == ()


def test_no_commit_is_read_again_without_a_new_one(
    empty_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver without input asks about once a second."""
    pipeline = broken(empty_lake, "refused_above: 20 %, batches: 1")
    breaker = Breaker(empty_lake.layout, pipeline)
    deliver(empty_lake, 1, 0, 10)
    assert breaker.why_open() is not None
    with monkeypatch.context() as patch:
        patch.setattr(circuit_breaker, "lineage", lambda *_: pytest.fail("it reads the log"))
        assert breaker.why_open() is not None
    deliver(empty_lake, 2, 10, 0)
    assert breaker.why_open() is None


def test_too_little_input(empty_lake: Lake) -> None:
    lake = empty_lake
    pipeline = broken(lake, "records_below: 15, batches: 2")
    deliver(lake, 1, 10, 0)
    deliver(lake, 2, 4, 0)
    assert (
        Breaker(lake.layout, pipeline).why_open()
        == "14 records in the last 2 batches, fewer than 15"
    )
    deliver(lake, 3, 11, 0)
    assert Breaker(lake.layout, pipeline).why_open() is None


def test_a_replay_says_nothing_about_the_input(empty_lake: Lake) -> None:
    lake = empty_lake
    pipeline = broken(lake, "records_below: 15, refused_above: 50 %, batches: 2")
    deliver(lake, 1, 10, 0)
    deliver(lake, 2, 10, 0)
    bronze = Table(lake.layout.storage, "bronze/events", pipeline=pipeline.name)
    held = bronze.refresh()
    document = {"source": "events", "rows": 100, "reason": ""}
    control = control_of(lake.layout.storage, pipeline.name)
    append(control, REPLAY, document, position_of({"events": bronze}), NOON)
    bronze.commit(held.advanced_to(3, NOON).counting({"read": 100, "replayed": 100}))
    lake.commit("silver/good", 3, [], {"quarantined": 100})
    assert Breaker(lake.layout, pipeline).why_open() is None
    deliver(lake, 4, 4, 0)
    assert (
        Breaker(lake.layout, pipeline).why_open()
        == "14 records in the last 2 batches, fewer than 15"
    )


def at(lake: Lake, pipeline: Pipeline, now: datetime = NOON) -> HealthContext:
    jobs: tuple[Any, ...] = ()
    return HealthContext(pipeline, lake.layout, jobs, now)


def test_a_breaker_that_asks_nothing_is_refused(empty_lake: Lake) -> None:
    with pytest.raises(DeclarationError, match="needs refused_above or records_below"):
        broken(empty_lake, "batches: 2")
