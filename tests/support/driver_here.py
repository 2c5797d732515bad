"""A driver in the process of a test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.jobs.driver import Driver
from headgate.jobs.task import Task


@dataclass(frozen=True)
class _Shared:
    """The session that tests share, for a driver that would start its own."""

    spark: SparkSession

    def start(self, name: str, scratch: Path) -> SparkSession:
        return self.spark


def run_here(spark: SparkSession, task: Task) -> None:
    """To its end. A driver in a process of its own costs 10 s of CPU more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SparkSession, "stop", lambda _: None)
        Driver(task, sessions=_Shared(spark)).run()
