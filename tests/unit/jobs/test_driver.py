"""A driver that is stopped before it has a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.jobs.driver import Driver
from headgate.jobs.errors import JavaEndedError
from headgate.jobs.task import Task
from tests.support.lake import declared


@dataclass
class NoSession:
    """Its JVM ends while it starts."""

    meanwhile: Callable[[], None] = lambda: None

    def start(self, name: str, scratch: Path) -> SparkSession:
        self.meanwhile()
        raise JavaEndedError


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
