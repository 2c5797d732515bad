"""Drivers and commands on the session that tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from headgate.cli import log_file
from headgate.jobs.driver import Driver
from headgate.jobs.session import LocalSessions
from headgate.jobs.task import Task


@contextmanager
def sharing(spark: SparkSession) -> Iterator[None]:
    """Whatever would start a session of its own gets ``spark``, and leaves it, this process's log
    and its priority as they are. A JVM of its own costs 10 s of CPU more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "nice", lambda _: 0)
        patched.setattr(log_file, "divert_to", lambda *_: None)
        patched.setattr(LocalSessions, "start", lambda *_: spark)
        patched.setattr(SparkSession, "stop", lambda _: None)
        yield


def run_here(spark: SparkSession, task: Task) -> None:
    """Run a driver to its end, in the process of the test."""
    with sharing(spark):
        Driver(task).run()
