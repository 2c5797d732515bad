"""A start is done when its process has reached its source, or cannot reach it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from headgate.lake.control.driver_reports import SourceFailure, SourceProgress
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.local import NotAliveError, Started, launch
from headgate.supervision.logs import json_line, run_log, tail_log

# A launched process outlives the process that launched it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:subprocess:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

_DRIVER = """
import os, sys, time
from datetime import UTC, datetime
from headgate.lake.storage.files import Storage
from headgate.lake.storage.documents import write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.control.ownership import LAYERS, Owner, lease_path
from headgate.lake.control.driver_reports import Backlog
storage, now = Storage({folder!r}), datetime.now(UTC).isoformat()
held = {{"since": now, "renewed": now, "released": False, "epoch": 2}}
for layer in LAYERS:
    write_document(storage, lease_path(layer), {{**vars(Owner.here()), **held}})
said = {{"state": "running", "epoch": 2, "rows": 0, "seconds": 0, "totals": {{}}}}
said |= {{"updated": now, "trouble": {trouble!r}}}
source = {{"outage": {trouble!r} and {{"what": "", "since": now, "tried": now}}, "backlog": None}}
said |= {{"sources": {{"b": source}}}}
def tell():
    write_document(storage, Layout.document("status-fused"), said)
tell()
{then}
time.sleep(60)
"""


def driver(layout: Layout, trouble: str | None, then: str = "") -> str:
    """A process that reports as a driver whose tables are open; ``then`` is what it does next."""
    return _DRIVER.format(folder=layout.storage.uri(), trouble=trouble, then=then)


@pytest.fixture
def launches(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Started]]:
    pids = list[int]()

    def work(script: str) -> Started:
        monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
        started = launch(layout, Path("tiny.yml"), "lake")
        pids.append(started.pid)
        return started

    yield work
    for pid in pids:
        psutil.Process(pid).kill()


@pytest.mark.slow
def test_a_start_is_done_when_the_source_has_been_reached(
    layout: Layout, launches: Callable[[str], Started]
) -> None:
    then = """
time.sleep(0.5)
source["backlog"] = vars(Backlog("files", 0, 0))
tell()
"""
    assert launches(driver(layout, None, then)).waits_for is None
    (job,) = probe(layout, datetime.now(UTC))
    assert job.has_reached_sources
    failure = SourceFailure("a table is damaged", "repair it", datetime.now(UTC))
    for one, is_reached in ((SourceProgress(), False), (SourceProgress(failure=failure), True)):
        assert replace(job, sources=job.sources | {"other": one}).has_reached_sources is is_reached


@pytest.mark.slow
def test_stages_of_a_log_of_json_lines_are_passed_on(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = json_line("stage", "opening tables", datetime.now(UTC))
    went_on, said = tmp_path / "went on", list[str]()
    then = f"""
while not os.path.exists({str(went_on)!r}):
    time.sleep(0.05)
source["backlog"] = vars(Backlog("files", 0, 0))
tell()
"""
    script = f"print({line!r}, flush=True)\n{driver(layout, None, then)}"
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    monkeypatch.setattr(local, "STARTS_WITHIN", 60.0)

    def say(stage: str) -> None:
        said.append(stage)
        went_on.touch()

    started = launch(layout, Path("tiny.yml"), "lake", ["--log-format", "json"], say)
    psutil.Process(started.pid).kill()
    assert said == ["opening tables"]
    lines = run_log(layout).read_text().splitlines()
    assert [json.loads(each)["event"] for each in lines] == ["start", "stage"]
    assert tail_log(run_log(layout), 1) == ["… opening tables"]
    assert tail_log(run_log(layout), 9)[0].startswith("--- 20")


@pytest.mark.slow
def test_why_a_driver_ended_is_read_from_its_json_lines(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    lines = json_line("stage", "starting", now), json_line("error", "wrong", now, remedy="do this")
    script = f"print({lines[0]!r}); print({lines[1]!r}); raise SystemExit(3)"
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    with pytest.raises(NotAliveError) as ended:
        launch(layout, Path("tiny.yml"), "lake", ["--log-format", "json"])
    assert ended.value.message == "wrong\ndo this"


def test_secrets_are_in_the_environment_of_the_driver_alone(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", "of Airflow")
    script = """
import os, sys
token = os.environ["TOKEN"]
is_alone = "AIRFLOW_CONN_DB" not in os.environ and token not in str(sys.orig_argv)
sys.exit(3 if token == "s3" + "cret" and is_alone else 4)
"""
    monkeypatch.setattr(local, "HEADGATE", (sys.executable, "-c", script))
    with pytest.raises(NotAliveError) as ended:
        launch(layout, Path("tiny.yml"), "lake", variables={"TOKEN": "s3cret"})
    assert ended.value.exit_code == 3
    assert "s3cret" not in run_log(layout).read_text()


def test_a_source_that_refuses_is_the_starts_error(
    layout: Layout, launches: Callable[[str], Started]
) -> None:
    with pytest.raises(NotAliveError, match="no topic") as refused:
        launches(driver(layout, None, "print('no topic bids'); sys.exit(3)"))
    assert refused.value.exit_code == 3


@pytest.mark.slow
def test_a_source_that_does_not_answer_is_waited_for_a_while_only(
    layout: Layout, launches: Callable[[str], Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "REACHES_WITHIN", 0.5)
    started = launches(driver(layout, "no answer"))
    assert (started.waits_for, started.is_outage) == ("no answer", True)


@pytest.mark.slow
def test_a_start_waits_no_longer_for_one_of_several_sources(
    layout: Layout, launches: Callable[[str], Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "REACHES_WITHIN", 0.5)
    then = """
said["sources"]["c"] = {"backlog": vars(Backlog("files", 0, 0))}
tell()
"""
    started = launches(driver(layout, "source b: no answer", then))
    assert (started.waits_for, started.is_outage) == ("source b: no answer", True)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [None, "source b: no answer"])
def test_a_start_names_the_source_that_is_not_read(
    layout: Layout, launches: Callable[[str], Started], trouble: str | None
) -> None:
    """Its backlog is known from before, so the start waits for nothing."""
    then = """
source["backlog"] = vars(Backlog("files", 2, 0))
said["sources"]["c"] = {"backlog": vars(Backlog("files", 0, 0))}
tell()
"""
    started = launches(driver(layout, trouble, then))
    assert (started.waits_for, started.is_outage) == (trouble, False)


@pytest.mark.slow
def test_tables_that_take_long_to_come_level_end_nothing(
    layout: Layout, launches: Callable[[str], Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, opened = [0.0], local._opened

    def leaping(layout: Layout, epoch: int) -> tuple[JobState, ...]:
        """Let the time limit of a start pass as soon as the tables are open."""
        jobs = opened(layout, epoch)
        now[0] += local.STARTS_WITHIN if jobs else 0
        return jobs

    monkeypatch.setattr(local, "_opened", leaping)
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    started = launches(driver(layout, None))
    assert "bringing its tables up to date" in str(started.waits_for)
    assert not started.is_outage
    assert psutil.pid_exists(started.pid)
