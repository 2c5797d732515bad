"""Provides the Spark session of a driver, and its scratch folder.

The folder has Spark's scratch files and its checkpoint. It is local, disposable, and used by one
run of a driver.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from headgate.driver import planning
from headgate.driver.errors import JavaEndedError
from headgate.driver.task import FUSED
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.machine.jars import class_archive, java
from headgate.machine.jvm import (
    has_ended,
    ignore_termination,
    leave_out_checksum_files,
    register_null_on_error,
    remember_functions,
)

# Give half the heap to the young generation: nearly all objects of a batch are garbage after it.
# This cuts collections by a third and a batch's CPU time by 2 to 3 %. Huge pages cut it by 8 to
# 10 %; only a JVM on Linux knows that flag.
_JVM = "-XX:+UseParallelGC -XX:NewRatio=1" + (
    " -XX:+UseTransparentHugePages" if sys.platform == "linux" else ""
)

_OPTIONS = "spark.driver.extraJavaOptions"

# Columns whose values are all unique: a dictionary would be useless.
_UNIQUE = ("_offset", "_event_id")


# Bytes. Each split of a table's file is a task of its own.
_SPLIT = 8 << 20

# Options that Spark must redact when it prints a plan or a configuration.
_SECRET = r"(?i)secret|password|passphrase|token|access[.]?key|credential|jaas|keystore[.]key"
_CHOSEN = "PYSPARK_PYTHON"


class SessionProvider(Protocol):
    """Gives drivers their sessions. Options that affect results are the same in all sessions."""

    def start(self, name: str, scratch: Path) -> SparkSession:
        """Start a session; the caller stops it. ``scratch`` is a local folder that is removed after
        the session has ended."""


@dataclass(frozen=True)
class LocalSessions:
    """Sessions in a JVM of this process, on some of this machine's cores."""

    cores: int
    jars: Sequence[Path] = ()

    def start(self, name: str, scratch: Path) -> SparkSession:
        """Start a session that listens on loopback only and writes nothing outside ``scratch``.

        Reads ``HEADGATE_DRIVER_MEMORY`` and ``HEADGATE_DRIVER_JAVA_OPTIONS``.
        """
        return _start(name, self.cores, scratch, self.jars)


@contextmanager
def passing_session(name: str, cores: int, jars: Sequence[Path] = ()) -> Iterator[SparkSession]:
    """A session for one command, in a scratch folder that is removed after it."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as scratch:
        spark = LocalSessions(cores, jars).start(name, Path(scratch))
        try:
            yield spark
        finally:
            stop_session(spark)


def stop_session(spark: SparkSession) -> None:
    """End a session, unless its JVM has died: the error of ``stop`` would hide the first error."""
    if not has_ended(spark, within=0):
        spark.stop()


def _start(name: str, cores: int, scratch: Path, jars: Sequence[Path]) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    scratch.mkdir(parents=True, exist_ok=True)
    archived = class_archive.jvm_options()
    with workers_python(scratch):
        try:
            spark = _session(name, cores, scratch, jars, archived)
        except PySparkRuntimeError as error:
            if not archived:
                raise JavaEndedError from error
            # The cause is unknown, so start again without the archive to exclude it.
            try:
                spark = _session(name, cores, scratch, jars, "")
            except PySparkRuntimeError as again:
                raise JavaEndedError from again
    ignore_termination(spark)
    leave_out_checksum_files(spark)
    remember_functions(spark)
    register_null_on_error(spark)
    planning.register_reference_source(spark)
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
        "spark.driver.memory": java.heap(),
        # At Spark's limit of 1 GiB, the rules of a large gold table would end every driver.
        "spark.driver.maxResultSize": "0",
        _OPTIONS: f"{_JVM} {java.options()}",
        "spark.redaction.regex": _SECRET,
        "spark.sql.redaction.options.regex": f"{_SECRET}|url",
        "spark.ui.enabled": "false",
        # Spark keeps finished queries even without the UI; a thousand plans would fill the heap.
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # PySpark records the line of each call for error messages: three of four calls to the JVM.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # The value is a list of paths and cannot quote a comma. If the path has one, Spark uses its
        # default, /tmp.
        **({} if "," in str(scratch) else {"spark.local.dir": str(scratch)}),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # Without Hive, whose Derby database would write into the current folder.
        "spark.sql.catalogImplementation": "in-memory",
        # Spark allocates a page for every hash table, even for a single row. The default of 64 MB
        # filled the heap every few batches.
        "spark.buffer.pageSize": "2m",
        "spark.sql.session.timeZone": "UTC",
        # A failed cast of user data must give a null or a quarantine reason, not end the stream.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores),
        # Each split is a task of its own, so the position of a line does not depend on the other
        # files of the batch.
        "spark.sql.files.maxPartitionBytes": str(_SPLIT),
        "spark.sql.files.openCostInBytes": str(_SPLIT),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Abandon the dictionary of unique values after 64 KiB instead of 1 MiB: in a profile, an
        # eighth of a batch's samples built dictionaries that were then abandoned.
        "spark.hadoop.parquet.dictionary.page.size": str(64 * 1024),
        **{f"spark.hadoop.parquet.enable.dictionary#{name}": "false" for name in _UNIQUE},
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.parquet.enable.summary-metadata": "false",
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.hadoop.parquet.size.statistics.enabled": "false",
        # The default manager forks a process for every file. The checkpoint is disposable.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "1",
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.cleaner.periodicGC.interval": "10min",
    }


@contextmanager
def workers_python(scratch: Path) -> Iterator[None]:
    """A session that is started in the ``with`` block starts its workers with the script, which is
    in the folder ``scratch``. Changes nothing if the user has set PYSPARK_PYTHON."""
    if _CHOSEN in os.environ:
        yield
        return
    os.environ[_CHOSEN] = _script(scratch)
    try:
        yield
    finally:
        del os.environ[_CHOSEN]


def _script(scratch: Path) -> str:
    """The script; this Python if scripts cannot be executed, as on a volume with ``noexec``."""
    path = os.environ.get("PYTHONPATH")
    as_here = "unset PYTHONPATH" if path is None else f"export PYTHONPATH={shlex.quote(path)}"
    script = scratch / "python"
    script.write_text(f'#!/bin/sh\n{as_here}\nexec {shlex.quote(sys.executable)} "$@"\n')
    script.chmod(0o755)
    try:
        subprocess.run([script, "-c", ""], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return sys.executable
    return str(script)


def scratch_folder(layout: Layout, job: str, epoch: int) -> Path:
    return Path(layout.storage.uri(Layout.checkpoint(job, epoch)))


def remove_orphaned(layout: Layout, layers: Sequence[str], epoch: int) -> None:
    """Remove the scratch folders of killed drivers. Call it after all tables of ``layers`` are
    fenced with ``epoch``.

    Drivers of lower epochs that wrote no other layers can no longer commit; one that still runs
    fails a little earlier. The folder of a fused driver stays if only some of its layers are
    fenced: it may still write the others. The next start removes what cannot be removed now.
    """
    shared = scratch_folder(layout, FUSED, epoch).parent
    for folder in shared.glob("*-*"):
        job, _, number = folder.name.rpartition("-")
        wrote = LAYERS if job == FUSED else (job,)
        if number.isdecimal() and int(number) < epoch and set(wrote) <= set(layers):
            shutil.rmtree(folder, ignore_errors=True)
