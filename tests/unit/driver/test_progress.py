"""What ``headgate status`` can see of a job between batches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.load import load
from headgate.driver.progress import IDLE_WRITES, JobProgress
from headgate.lake.control.driver_reports import Backlog, Outage
from headgate.lake.control.driver_requests import record_end
from headgate.lake.storage.documents import decoded, read_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.state import commit_time
from tests.support.reported import of_b
from tests.unit.driver.conftest import Tables
from tests.unit.insight.ledger.conftest import DECLARATION

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AWAY = Outage("no answer", NOON, NOON)
SAID = "no answer, for 0 s (1 attempt); the driver keeps trying"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(tables: Tables, clock: Clock) -> JobProgress:
    made = JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON, clock=clock)
    made.batch_done(tables.runtime, of_b(Backlog("files", 0, 0)))
    return made


def seen(tables: Tables) -> dict[str, Any]:
    document = read_document(tables.layout.storage, Layout.document("status-fused"))
    assert document is not None
    return document


def source(tables: Tables) -> dict[str, Any]:
    found: dict[str, Any] = seen(tables)["sources"]["b"]
    return found


def test_a_minute_without_events_is_written_as_it_goes(
    tables: Tables, progress: JobProgress, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    write = Storage.write

    def counted(storage: Storage, path: str, content: bytes) -> None:
        if storage == tables.layout.storage:  # leases of other tests are renewed meanwhile
            writes.append(path)
        write(storage, path, content)

    monkeypatch.setattr(Storage, "write", counted)
    for _ in range(240):  # four polls a second
        clock.tick(0.25)
        progress.idle(of_b(Backlog("files", 0, 0)), tables.runtime)
    assert len(writes) == timedelta(minutes=1) / IDLE_WRITES
    assert seen(tables)["updated"] == (NOON + timedelta(minutes=1)).isoformat()


@pytest.mark.parametrize("outage", [None, AWAY])
def test_it_is_written_after_the_clock_was_set_back(
    tables: Tables, progress: JobProgress, clock: Clock, outage: Outage | None
) -> None:
    """Otherwise a supervisor takes an idle driver for a stuck one."""

    def looks() -> None:
        if outage is None:
            progress.idle(of_b(Backlog("files", 0, 0)), tables.runtime)
        else:
            progress.waits("b", outage)

    looks()
    clock.tick(-3600)
    tables.layout.storage.remove(Layout.document("status-fused"))
    looks()
    assert (source(tables)["outage"] is None) == (outage is None)


def test_what_other_jobs_and_operations_did_is_seen(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    tables.commit("gold/two", kind="operation", operation=1, total={"final": 7})
    tables.commit("bronze/b", kind="data", n=1, total={"read": 9})
    clock.tick(6)
    progress.idle(of_b(Backlog("files", 0, 0)), tables.runtime)
    document = seen(tables)
    assert (source(tables)["n"], document["totals"]["gold/two"]) == (1, {"final": 7})


def test_while_a_batch_runs_only_its_backlog_is_told(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    tables.refreshed.clear()
    clock.tick(6)
    progress.idle(of_b(Backlog("files", 3, 300)), None)
    document = seen(tables)
    assert decoded(source(tables)["backlog"], Backlog) == Backlog("files", 3, 300)
    assert document["updated"] == NOON.isoformat()
    assert not tables.refreshed


@pytest.mark.parametrize(
    ("backlog", "said"),
    [
        (Backlog("files", 0, 0), "none"),
        (Backlog("files", 1, 300_000), "1 file 293.0 KB"),
        (Backlog("files", 3, 11_970), "3 files 11.7 KB"),
        (Backlog("batches", 1), "1 batch"),
        (Backlog("records", 1_000), "1,000 records"),
    ],
)
def test_a_backlog_reads_as_a_sentence_would(backlog: Backlog, said: str) -> None:
    assert str(backlog) == said


def test_a_batch_counts_from_the_one_before_and_lasts_from_when_there_was_work(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    clock.tick(60)
    progress.idle(of_b(Backlog("files", 0, 0)), tables.runtime)
    clock.tick(1)
    progress.idle(of_b(Backlog("files", 1, 10)), None)
    tables.commit("bronze/b", kind="data", n=1, total={"read": 9})
    clock.tick(6)
    progress.idle(of_b(Backlog("files", 1, 10)), tables.runtime)
    clock.tick(1)
    progress.batch_done(tables.runtime, of_b(Backlog("files", 0, 0)))
    assert (progress.rows, progress.seconds) == (9, 8.0)


def test_a_bronze_with_fewer_rows_that_replaces_another_is_a_new_beginning(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    for n, read in ((2, 100), (1, 50), (2, 60)):
        clock.tick(7)
        before = progress.read
        tables.commit("bronze/b", kind="data", n=n, total={"read": read})
        progress.batch_done(tables.runtime, of_b(Backlog("records", 5)))
        assert progress.rows == max(read - before, 0)
    assert [sample.read for sample in progress.sources["b"].samples] == [50, 60]


def test_records_that_are_read_are_not_in_gold_before_the_batch_ends(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    clock.tick(6)
    progress.idle(of_b(Backlog("records", 0)), None)
    assert progress.updated == NOON
    clock.tick(1)
    progress.batch_done(tables.runtime, of_b(Backlog("records", 0)))
    assert progress.seconds == 7.0


def test_an_outage_and_a_pause_are_written_at_once(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    behind = Backlog("records", 5)
    assert not progress.idle(of_b(behind), tables.runtime)
    assert not progress.idle(of_b(behind, outage=AWAY), tables.runtime), (
        "it has lines of its own in the log"
    )
    assert seen(tables)["trouble"] == SAID
    assert decoded(source(tables)["outage"], Outage) == AWAY
    assert not progress.idle(of_b(behind), tables.runtime)
    assert (seen(tables)["trouble"], source(tables)["outage"]) == (None, None)
    assert progress.idle(of_b(behind), tables.runtime, paused=NOON)
    assert not progress.idle(of_b(behind), tables.runtime, paused=NOON)
    assert seen(tables)["paused"] == NOON.isoformat()
    assert progress.idle(of_b(behind), tables.runtime)
    assert seen(tables)["paused"] is None


@pytest.mark.parametrize("outage", [None, AWAY])
def test_only_an_outage_of_the_source_keeps_a_driver_from_being_up_to_date(
    tables: Tables, progress: JobProgress, clock: Clock, outage: Outage | None
) -> None:
    clock.tick(900)
    progress.idle(
        of_b(Backlog("records", 0), outage=outage), tables.runtime, also="publish out: it is down"
    )
    assert (seen(tables)["updated"] == clock.now.isoformat()) == (outage is None)
    progress.idle(of_b(Backlog("records", 0)), tables.runtime, load_outage=outage)
    assert seen(tables)["updated"] == clock.now.isoformat(), "a load keeps the stream from nothing"
    assert (seen(tables)["load_outage"] is None) == (outage is None)
    progress.idle(
        of_b(Backlog("records", 0), outage=outage), tables.runtime, also="publish out: it is down"
    )
    said = "no answer, for 15 min (1 attempt); the driver keeps trying; " if outage else ""
    assert seen(tables)["trouble"] == f"{said}publish out: it is down"


def test_a_batch_does_not_end_the_trouble_of_a_sink(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    behind = Backlog("records", 5)
    assert progress.idle(of_b(behind), tables.runtime, also="publish out: it is down")
    progress.waits("b", AWAY)
    assert seen(tables)["trouble"] == f"{SAID}; publish out: it is down"
    progress.sources_ready(of_b(behind))
    assert seen(tables)["trouble"] == "publish out: it is down"
    progress.batch_done(tables.runtime, of_b(behind))
    assert seen(tables)["trouble"] == "publish out: it is down"
    assert not progress.idle(of_b(behind), tables.runtime, also="publish out: still down")
    assert progress.idle(of_b(behind), tables.runtime)
    assert seen(tables)["trouble"] is None


def test_a_sink_that_is_down_does_not_hide_how_the_backlog_changes(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    for also in (None, "publish out: it is down", None):
        clock.tick(5)
        progress.idle(of_b(Backlog("records", 1)), tables.runtime, also=also)
    assert len(progress.sources["b"].samples) == 3
    progress.waits("b", AWAY)
    assert source(tables)["samples"] == []


def test_a_backlog_in_records_is_sampled_between_batches_and_after_them(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    for count in (10, 20, 30):
        clock.tick(5)
        progress.idle(of_b(Backlog("records", count)), tables.runtime)
    clock.tick(5)
    progress.idle(
        of_b(Backlog("records", 99)), None
    )  # a batch is running; the totals are from before it
    tables.commit("bronze/b", kind="data", n=1, total={"read": 9})
    clock.tick(5)
    progress.batch_done(tables.runtime, of_b(Backlog("records", 21)))
    samples = source(tables)["samples"]
    assert [(s["backlog"], s["read"]) for s in samples] == [(10, 0), (20, 0), (30, 0), (21, 9)]


@pytest.mark.slow
@pytest.mark.parametrize("apart", [{"outage": AWAY}, {"paused": NOON}])
def test_a_pause_and_an_outage_begin_the_samples_anew(
    tables: Tables, progress: JobProgress, clock: Clock, apart: dict[str, Any]
) -> None:
    away, paused = apart.get("outage"), apart.get("paused")
    for is_apart in (False, True, False):
        clock.tick(5)
        report = of_b(Backlog("records", 1), outage=away if is_apart else None)
        progress.idle(report, tables.runtime, paused if is_apart else None)
    assert len(progress.sources["b"].samples) == 1


def test_gold_changed_when_its_commits_say(
    tables: Tables, progress: JobProgress, clock: Clock
) -> None:
    assert seen(tables)["changed"] is None
    for name, minutes in (("one", 5), ("two", 3)):
        at = commit_time(NOON - timedelta(minutes=minutes))
        tables.commit(f"gold/{name}", kind="data", changed_at=at)
    clock.tick(6)
    progress.idle(of_b(Backlog("files")), tables.runtime)
    assert seen(tables)["changed"] == (NOON - timedelta(minutes=3)).isoformat()


def test_a_driver_that_was_killed_on_request_has_not_crashed(
    tables: Tables, tmp_path: Path
) -> None:
    """`headgate down` kills a driver whose batch lasts longer than a minute."""
    JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON).waits("b", AWAY)
    record_end(tables.layout, 1)
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    began = JobProgress.begin(load(file), tables.layout, "fused", 2, tables.runtime)
    assert began.updated == began.since


def test_drivers_that_crash_again_and_again_are_not_level(tables: Tables, tmp_path: Path) -> None:
    """The first driver was up to date at noon. The later ones die in their first batch."""
    JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON).waits("b", AWAY)
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    for epoch in (2, 3):
        began = JobProgress.begin(load(file), tables.layout, "fused", epoch, tables.runtime)
        assert began.since > NOON
        assert (seen(tables)["epoch"], seen(tables)["updated"]) == (epoch, NOON.isoformat())
    began.finish(tables.runtime, finished=True)
    rested = JobProgress.begin(load(file), tables.layout, "fused", 4, tables.runtime)
    assert rested.updated == rested.since, "after a rest nobody expects it to be level"


def test_the_first_batch_of_a_driver_took_no_longer_than_it_runs(
    tables: Tables, clock: Clock
) -> None:
    long_ago = NOON - timedelta(hours=1)
    began = JobProgress("p", "fused", 2, NOON, tables.layout, updated=long_ago, clock=clock)
    clock.tick(4)
    began.batch_done(tables.runtime, of_b(Backlog("files")))
    assert (began.seconds, began.updated) == (4.0, clock.now)


def test_files_are_not_sampled(tables: Tables, progress: JobProgress, clock: Clock) -> None:
    clock.tick(5)
    progress.idle(of_b(Backlog("files", 1, 10)), tables.runtime)
    assert progress.sources["b"].samples == ()


def test_brokers_that_never_answered_are_seen_at_once(tables: Tables, clock: Clock) -> None:
    progress = JobProgress("p", "fused", 1, NOON, tables.layout, updated=NOON, clock=clock)
    progress.waits("b", AWAY)
    assert (seen(tables)["trouble"], source(tables)["backlog"]) == (SAID, None)
    clock.tick(1)
    progress.waits("b", AWAY)
    assert seen(tables)["trouble"] == SAID, "the document is not written four times a second"
    clock.tick(IDLE_WRITES.total_seconds())
    progress.waits("b", AWAY)
    assert seen(tables)["trouble"] == SAID.replace("0 s", "6 s")


@pytest.mark.parametrize(("finished", "state"), [(True, "finished"), (False, "stopped")])
def test_an_end_in_good_order_leaves_no_trouble(
    tables: Tables, progress: JobProgress, finished: bool, state: str
) -> None:
    progress.waits("b", AWAY)
    progress.finish(tables.runtime, finished=finished)
    assert (seen(tables)["state"], seen(tables)["trouble"]) == (state, None)
