"""A driver that is stopped before it has a session or while it waits for sinks, that loses its
session or its disk, or whose tables are rebuilt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.driver import driver as module
from headgate.driver import lease, stream
from headgate.driver.driver import Driver
from headgate.driver.errors import JavaDiedError, JavaEndedError
from headgate.driver.progress import JobProgress
from headgate.driver.task import Task
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import LAYERS
from headgate.lake.control.requests import send_request
from headgate.supervision.progress_text import progress_line
from tests.support.lake import declared
from tests.support.reported import at_b
from tests.unit.driver.conftest import Tables
from tests.unit.driver.test_jvm import session

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class NoSession:
    """Sessions whose JVM ends during the start."""

    meanwhile: Callable[[], None] = lambda: None

    def start(self, name: str, scratch: Path) -> SparkSession:
        self.meanwhile()
        raise JavaEndedError


class DeadSessions:
    """Sessions whose JVM has been killed."""

    def start(self, name: str, scratch: Path) -> SparkSession:
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        found: SparkSession = session(process)
        return found


def test_a_jvm_that_the_same_signal_ended_is_no_error(tmp_path: Path) -> None:
    sessions = NoSession()
    task = Task(declared(tmp_path), str(tmp_path / "root"))
    with pytest.raises(JavaEndedError):
        Driver(task, sessions=sessions).run()
    driver = Driver(task, sessions=sessions)
    sessions.meanwhile = driver.stop
    driver.run()
    assert driver.left is None, "it was to run until it is stopped"


def test_a_run_to_the_end_of_the_input_says_what_it_has_left(tmp_path: Path) -> None:
    sessions = NoSession()
    task = Task(declared(tmp_path), str(tmp_path / "root"), once=True)
    driver = Driver(task, sessions=sessions)
    sessions.meanwhile = driver.stop
    driver.run()
    assert driver.left == "the input was not listed"


def test_a_jvm_that_was_killed_is_what_failed(tmp_path: Path) -> None:
    """The killed JVM is reported, whatever else fails because of it."""
    with pytest.raises(JavaDiedError):
        Driver(Task(declared(tmp_path), str(tmp_path / "root")), sessions=DeadSessions()).run()


def test_a_full_disk_replaces_no_error_and_keeps_no_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = list[Path]()

    def write(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    class Filling(NoSession):
        def start(self, name: str, scratch: Path) -> SparkSession:
            (scratch / "shuffle").mkdir(parents=True)
            folders.append(scratch)
            monkeypatch.setattr(lease, "write_document", write)
            return super().start(name, scratch)

    with pytest.raises(JavaEndedError):
        Driver(Task(declared(tmp_path), str(tmp_path / "root")), sessions=Filling()).run()
    assert [folder.exists() for folder in folders] == [False]


def test_a_stop_ends_the_wait_for_sinks(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the stop request of another process, which is a document."""
    monkeypatch.setattr(stream, "run_batches", lambda _: None)
    monkeypatch.setattr(module, "take_in_requests", lambda *_: None)
    tables.runtime.layers = LAYERS
    tables.runtime.stages = SimpleNamespace(trouble="gold/hours is damaged")
    task = Task(tables.runtime.pipeline, str(tmp_path), once=True)
    driver, asked, said = Driver(task), list[bool](), list[str]()
    monkeypatch.setattr(driver, "_say", said.append)

    def require_done(_: datetime, is_stopped: Callable[[], bool]) -> bool:
        asked.append(is_stopped())
        request_stop(tables.layout)
        asked.append(is_stopped())
        return False

    nothing = SimpleNamespace(
        finish=lambda *_, **__: None,
        caught_up=lambda _: None,
        sources=at_b(backlog=Backlog("files", 0)),
    )
    run: Any = SimpleNamespace(
        runtime=tables.runtime,
        task=task,
        catch_up=SimpleNamespace(run=lambda **_: None),
        publications=SimpleNamespace(require_done=require_done),
        progress=nothing,
        writes_bronze=True,
    )
    driver._process(run)
    assert (asked, said[-1]) == ([False, True], "gold/hours is damaged")
    driver.stop()
    assert driver.left == "all input is read, but not all tables, loads and publications are done"


def test_a_run_that_only_catches_up_reports_what_the_tables_have_then(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver has died between bronze and gold, and this one has nothing else to do."""
    tables.commit("bronze/b", n=3, total={"read": 60})
    tables.runtime.layers = LAYERS
    tables.runtime.stages = SimpleNamespace(trouble=None)
    progress = JobProgress.begin(tables.runtime.pipeline, tables.layout, "fused", 1, tables.runtime)
    lines: list[str] = []

    def catch_up(**_: object) -> None:
        tables.commit("silver/s", n=3, total={"quarantined": 4})
        tables.commit("gold/one", n=3, total={"late": 7})

    monkeypatch.setattr(
        stream, "run_batches", lambda run: lines.append(progress_line(run.progress, NOW))
    )
    monkeypatch.setattr(module, "take_in_requests", lambda *_: None)
    task = Task(tables.runtime.pipeline, str(tmp_path))
    run: Any = SimpleNamespace(
        runtime=tables.runtime,
        task=task,
        catch_up=SimpleNamespace(run=catch_up),
        progress=progress,
        writes_bronze=True,
    )
    Driver(task)._process(run)
    assert lines == [
        "12:00:00  batch 3  read 60  backlog -  watermark -  late 7  quarantined 4  gold -"
    ]


def test_what_was_asked_is_taken_in_once_a_rebuild_of_bronze_is_published(
    tables: Tables, tmp_path: Path
) -> None:
    """For example, an upgrade ends early, and `late replay` starts a driver that publishes the
    rebuild. That driver then also reads the loads again."""
    done, runtime = list[str](), tables.runtime
    runtime.layers, runtime.reread = LAYERS, frozenset({"b"})
    runtime.undecidable = runtime.reread
    runtime.decide_operation = lambda name, *_: done.append(name)

    def catch_up(_: datetime) -> None:
        done.append("a catch-up")
        runtime.reread = runtime.undecidable = frozenset()

    runtime.catch_up = catch_up
    send_request(tables.layout, "drain", {}, datetime.now(UTC))
    driver = Driver(Task(runtime.pipeline, str(tmp_path), once=True, only_open=True))
    assert driver._bring_level(runtime)
    assert done == ["a catch-up", "drain", "a catch-up"]
    assert not driver._bring_level(runtime)


def test_a_job_is_called_after_its_layers(tmp_path: Path) -> None:
    tasks = [Task(declared(tmp_path), str(tmp_path), layers) for layers in (LAYERS, ("silver",))]
    assert [task.job for task in tasks] == ["fused", "silver"]
