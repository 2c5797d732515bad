"""Checks whether this machine can run a pipeline, and names a remedy for each problem."""

from __future__ import annotations

from pathlib import Path

from headgate.setup.doctor.check_result import CheckResult
from headgate.setup.doctor.environment import (
    names_of_files,
    packages,
    pyspark_python,
    python,
    spark_home,
)
from headgate.setup.doctor.folder import disk, renaming, writing
from headgate.setup.doctor.machine import broker_jars, java, memory, pinned_jars

__all__ = ["CheckResult", "examine"]


def examine(root: Path) -> tuple[CheckResult, ...]:
    """All checks, including passed ones, in the order in which to fix them.

    ``root`` is the folder that will hold the tables; it need not exist. Imports no Spark, starts no
    JVM except ``java -version``, and leaves no files behind; takes about a second.
    """
    return (
        java(),
        python(),
        names_of_files(),
        *packages(),
        pyspark_python(),
        spark_home(),
        pinned_jars(),
        broker_jars(),
        memory(),
        disk(root),
        writing(root),
        renaming(root),
    )
