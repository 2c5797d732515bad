"""The Spark session of a driver, and who provides it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from headgate.jars import class_archive
from headgate.jobs import references
from headgate.jvm import leave_out_checksum_files

# A split is a task: the position of a line never depends on what else is in the batch.
_SPLIT = 8 * 1024 * 1024

# Nearly all that a batch allocates dies with it: half of the heap for the young saves a third of
# the collections, 2 to 3 % of a batch's CPU time. Huge pages took 8 to 10 % off it; that flag is
# unknown to a JVM elsewhere.
_JVM = "-XX:+UseParallelGC -XX:NewRatio=1" + (
    " -XX:+UseTransparentHugePages" if sys.platform == "linux" else ""
)

_OPTIONS = "spark.driver.extraJavaOptions"

# Columns of ours whose every value is another one: no dictionary is even begun.
_UNIQUE = ("value", "offset", "event_id", "_offset", "_event_id")


# What Spark must not show of its options, wherever it prints a plan or a configuration.
_SECRET = r"(?i)secret|password|passphrase|token|access[.]?key|credential|jaas|keystore[.]key"


class SessionProvider(Protocol):
    """Where drivers get their sessions. Options that decide about results are the same in all of
    them: the size of a split is part of every offset of a file."""

    def start(self, name: str, scratch: Path) -> SparkSession:
        """A session, which its user stops. ``scratch`` is a folder of this machine that goes when
        the session has ended."""


@dataclass(frozen=True)
class LocalSessions:
    """Sessions in a JVM of this process, on some of this machine's cores."""

    cores: int
    jars: Sequence[Path] = ()

    def start(self, name: str, scratch: Path) -> SparkSession:
        """It listens on loopback only and writes nothing outside ``scratch``.

        Reads ``HEADGATE_DRIVER_MEMORY`` (default 2g).
        """
        return _start(name, self.cores, scratch, self.jars)


def _start(name: str, cores: int, scratch: Path, jars: Sequence[Path]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    scratch.mkdir(parents=True, exist_ok=True)
    archived = class_archive.jvm_options()
    try:
        spark = _session(name, cores, scratch, jars, archived)
    except PySparkRuntimeError:
        if not archived:
            raise
        # Whatever the JVM did not like: the archive shall not be it.
        spark = _session(name, cores, scratch, jars, "")
    leave_out_checksum_files(spark)
    references.register(spark)
    return spark


def _session(
    name: str, cores: int, scratch: Path, jars: Sequence[Path], archived: str
) -> SparkSession:
    builder = SparkSession.builder.appName(name).master(f"local[{cores}]")
    settings = _settings(cores, scratch)
    settings[_OPTIONS] += f" {archived}"
    for key, value in settings.items():
        builder = builder.config(key, value)
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    return builder.getOrCreate()


def _settings(cores: int, scratch: Path) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("HEADGATE_DRIVER_MEMORY", "2g"),
        _OPTIONS: f"{_JVM} -Dderby.system.home={scratch}",
        "spark.redaction.regex": _SECRET,
        "spark.sql.redaction.options.regex": f"{_SECRET}|url",
        "spark.ui.enabled": "false",
        # Kept even without the UI: a thousand finished queries with their plans fill the heap.
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # Spark takes a page for every hash table, also for one of a single row. Left to itself it
        # takes 64 MB: every few batches the heap was full of them.
        "spark.buffer.pageSize": "2m",
        "spark.sql.session.timeZone": "UTC",
        # An error in one user's cast must become a null or a reason, never the end of the stream.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.files.maxPartitionBytes": str(_SPLIT),
        "spark.sql.files.openCostInBytes": str(_SPLIT),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Unique values give their dictionary up after 64 KiB instead of 1 MiB: an eighth of a
        # batch's samples in a profile were dictionaries that were thrown away.
        "spark.hadoop.parquet.dictionary.page.size": str(64 * 1024),
        **{f"spark.hadoop.parquet.enable.dictionary#{name}": "false" for name in _UNIQUE},
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.parquet.enable.summary-metadata": "false",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.hadoop.parquet.size.statistics.enabled": "false",
        # Nobody looks for a document by its first and last one.
        "spark.hadoop.parquet.column.statistics.enabled#value": "false",
        # The default manager forks a process for every file; our checkpoint is disposable.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1",
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.cleaner.periodicGC.interval": "10min",
    }
