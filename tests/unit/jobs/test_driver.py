"""A driver that is stopped before it has a session, that loses it, or whose tables are rebuilt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from headgate.jobs.driver import Driver
from headgate.jobs.errors import JavaDiedError, JavaEndedError
from headgate.jobs.task import Task
from headgate.operations.requests import ask
from headgate.storage.ownership import LAYERS
from tests.support.lake import declared
from tests.unit.jobs.conftest import Tables
from tests.unit.jobs.test_jvm import session


@dataclass
class NoSession:
    """Its JVM ends while it starts."""

    meanwhile: Callable[[], None] = lambda: None

    def start(self, name: str, scratch: Path) -> SparkSession:
        self.meanwhile()
        raise JavaEndedError


class DeadSessions:
    """Their JVM has been killed."""

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
    assert driver.left == "the input was not looked at"


def test_a_jvm_that_was_killed_is_what_failed(tmp_path: Path) -> None:
    """Whatever else has failed for that reason."""
    with pytest.raises(JavaDiedError):
        Driver(Task(declared(tmp_path), str(tmp_path / "root")), sessions=DeadSessions()).run()


def test_what_was_asked_is_taken_in_once_a_rebuild_of_bronze_is_published(
    tables: Tables, tmp_path: Path
) -> None:
    """As `late replay` has it done after an upgrade that was ended before that. Then its driver
    also reads the loads again."""
    done, runtime = list[str](), tables.runtime
    runtime.layers, runtime.rebuild = LAYERS, SimpleNamespace(tables={"bronze/b": "digest"})
    runtime.intend = lambda name, *_: done.append(name)

    def catch_up(_: datetime) -> None:
        done.append("a catch-up")
        runtime.rebuild = None

    runtime.catch_up = catch_up
    ask(tables.layout, "drain", {}, datetime.now(UTC))
    driver = Driver(Task(runtime.pipeline, str(tmp_path), once=True, only_open=True))
    assert driver._bring_level(runtime)
    assert done == ["a catch-up", "drain", "a catch-up"]
    assert not driver._bring_level(runtime)
