"""Drivers and commands on the session that tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from headgate.cli import log_file
from headgate.driver.driver import Driver
from headgate.driver.session import LocalSessions
from headgate.driver.task import Task
from headgate.supervision.logs import spark_log


@contextmanager
def sharing(spark: SparkSession) -> Iterator[None]:
    """Code that would start its own session gets ``spark`` and does not stop it. The log and the
    priority of this process do not change. Another JVM would cost 10 s more of CPU."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "nice", lambda _: 0)
        patched.setattr(log_file, "divert_to", spark_log)
        patched.setattr(LocalSessions, "start", lambda *_: spark)
        patched.setattr(SparkSession, "stop", lambda _: None)
        yield


def run_here(spark: SparkSession, task: Task) -> None:
    """Run a driver to its end, in the process of the test."""
    with sharing(spark):
        Driver(task).run()
