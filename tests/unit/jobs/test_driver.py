"""A driver that is stopped before it has a session, or that loses it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.jobs.driver import Driver
from headgate.jobs.errors import JavaDiedError, JavaEndedError
from headgate.jobs.task import Task
from tests.support.lake import declared
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
