"""What the status document has of a pipeline with two sources, ``b`` and ``c``."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.driver.progress import JobProgress
from headgate.lake.control.driver_reports import Backlog, Outage, SourceFailure, SourceReport
from headgate.lake.storage.documents import read_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.unit.driver.conftest import SCHEMA, Tables
from tests.unit.driver.test_progress import NOON, Clock

LEVEL = SourceReport(Backlog("records", 0))
BEHIND = SourceReport(Backlog("records", 5))
AWAY = SourceReport(Backlog("records", 5), Outage("no answer", NOON, NOON))
BROKEN = SourceReport(
    Backlog("files", 2), failure=SourceFailure("a.json was rewritten", "put it back", NOON)
)


@pytest.fixture
def tables(tables: Tables) -> Tables:
    made = Table(tables.layout.storage, "bronze/c", pipeline="p")
    made.create(SCHEMA, "digest", time_column="time")
    newest = tables.runtime.newest
    tables.runtime.bronze["c"] = SimpleNamespace(table=made)
    tables.runtime.newest = lambda path: made if path == made.name else newest(path)
    return tables


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(tables: Tables, clock: Clock) -> JobProgress:
    made = JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON, clock=clock)
    made.batch_done(tables.runtime, {"b": LEVEL, "c": LEVEL})
    return made


def seen(tables: Tables) -> dict[str, Any]:
    document = read_document(tables.layout.storage, Layout.document("status-fused"))
    assert document is not None
    return document


def test_each_source_has_its_own_batch_ids_watermark_and_backlog(
    tables: Tables, progress: JobProgress
) -> None:
    payload = BronzePayload(watermark=commit_time(NOON))
    tables.commit("bronze/c", kind="data", n=7, payload=payload)
    tables.commit("bronze/b", kind="data", n=2)
    progress.batch_done(tables.runtime, {"b": LEVEL, "c": BEHIND})
    sources = seen(tables)["sources"]
    assert [(name, each["n"], each["watermark"]) for name, each in sources.items()] == [
        ("b", 2, None),
        ("c", 7, NOON.isoformat()),
    ]
    assert [each["backlog"]["count"] for each in sources.values()] == [0, 5]


def test_trouble_names_the_source(tables: Tables, progress: JobProgress) -> None:
    progress.idle({"b": AWAY, "c": BROKEN}, tables.runtime, also="publish out: it is down")
    assert progress.trouble == (
        "source b: no answer, for 0 s (1 attempt); the driver keeps trying; "
        "source c: a.json was rewritten; publish out: it is down"
    )


def test_a_batch_of_one_source_does_not_end_the_outage_of_another(
    tables: Tables, progress: JobProgress
) -> None:
    """Otherwise a busy source would hide the outage from checks and alerts."""
    progress.idle({"b": BEHIND, "c": AWAY}, None)
    progress.batch_done(tables.runtime, {"b": LEVEL, "c": AWAY})
    assert [each["outage"] is None for each in seen(tables)["sources"].values()] == [True, False]
    progress.idle({"b": LEVEL, "c": LEVEL}, tables.runtime)
    assert [each["outage"] for each in seen(tables)["sources"].values()] == [None, None]


def test_a_source_that_does_not_answer_at_the_start_is_one_of_several(
    tables: Tables, clock: Clock
) -> None:
    progress = JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON, clock=clock)
    assert AWAY.outage is not None
    progress.waits("c", AWAY.outage)
    progress.sources_ready({"b": BEHIND})
    sources = seen(tables)["sources"]
    assert (sources["b"]["outage"], sources["c"]["backlog"]) == (None, None)
    assert sources["c"]["outage"]["what"] == "no answer"


@pytest.mark.parametrize("held", [AWAY, BROKEN])
def test_a_source_that_cannot_be_read_keeps_no_other_from_being_up_to_date(
    tables: Tables, progress: JobProgress, clock: Clock, held: SourceReport
) -> None:
    clock.tick(60)
    progress.idle({"b": BEHIND, "c": held}, tables.runtime)
    assert progress.updated == NOON
    progress.idle({"b": LEVEL, "c": held}, tables.runtime)
    assert progress.updated == NOON + timedelta(minutes=1)
    clock.tick(60)
    progress.idle({"b": held, "c": held}, tables.runtime)
    assert progress.updated == NOON + timedelta(minutes=1), "nothing is read any more"


def test_a_failure_is_news_and_stays_in_the_last_status(
    tables: Tables, progress: JobProgress
) -> None:
    assert progress.idle({"b": LEVEL, "c": BROKEN}, tables.runtime)
    assert not progress.idle({"b": LEVEL, "c": BROKEN}, tables.runtime)
    assert progress.idle({"b": LEVEL, "c": LEVEL}, tables.runtime)
    progress.idle({"b": AWAY, "c": BROKEN}, tables.runtime)
    progress.finish(tables.runtime, finished=False)
    sources = seen(tables)["sources"]
    assert (sources["b"]["outage"], sources["c"]["failure"]["remedy"]) == (None, "put it back")
    assert seen(tables)["trouble"] == "source c: a.json was rewritten"


def test_an_outage_that_a_run_waits_for_no_longer_is_told_once(
    tables: Tables, progress: JobProgress
) -> None:
    given_up = replace(AWAY, failure=SourceFailure("no answer; asked for 2 s", "wait", NOON))
    progress.idle({"b": LEVEL, "c": given_up}, tables.runtime)
    assert progress.trouble == "source c: no answer; asked for 2 s"


def test_an_outage_of_one_source_keeps_the_samples_of_another(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    for c in (BEHIND, AWAY, BEHIND):
        clock.tick(5)
        progress.idle({"b": BEHIND, "c": c}, tables.runtime)
    assert [len(each["samples"]) for each in seen(tables)["sources"].values()] == [4, 1]
