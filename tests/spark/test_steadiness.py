"""A driver that runs for long does not slow down: no new compilations, no memory leak."""

from __future__ import annotations

import gc
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.machine.jvm import java
from tests.oracle import derive
from tests.support.engine import Engine
from tests.support.events import MALFORMED, reading
from tests.support.landing import Landing, lines
from tests.support.readings import NOON, declare, rules
from tests.support.rounds import in_full
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("bands",)
WARM = 20  # batches until all plans are compiled and all caches are full (the heap grew by 16 MB)
EVERY = 10  # seconds of event time between batches
MB = 1 << 20


def compilations(spark: SparkSession) -> int:
    """Classes that Spark generated and compiled so far."""
    metrics = java(spark).org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())


def heap(spark: SparkSession) -> int:
    """Bytes in use when full collections free no more. Spark's cleaner is a thread of its own and
    drops broadcasts only after their handles were collected, so the loop ends after three seconds
    without gain."""
    least, idle = collected(spark), 0
    while idle < 3:
        time.sleep(1)
        now = collected(spark)
        idle = 0 if now < least - MB else idle + 1
        least = min(least, now)
    return least


def collected(spark: SparkSession) -> int:
    gc.collect()
    java(spark).System.gc()
    runtime = java(spark).Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def batch(number: int, every: int) -> bytes:
    """The same kinds of records in every batch, late and bad ones included; batches are ``every``
    seconds apart. Five hundred batches, ten seconds apart, are not ahead of the files' own time."""
    start = NOON + timedelta(seconds=every * number)
    good = [
        reading(f"{number}-{k}", start + timedelta(seconds=k), site="North", level=k, value=k)
        for k in range(20)
    ]
    late = reading(f"{number}-late", start - timedelta(minutes=12), site="North", value=3)
    return lines([*good, late, good[3], MALFORMED["unparsable"], MALFORMED["missing_time"]])


def run(spark: SparkSession, folder: Path, batches: int, warm: int, every: int) -> None:
    """After batch ``warm``, nothing is compiled. If ``warm`` is large enough, the heap does not
    grow either."""
    landing = Landing(folder / "landing")
    landing.write_all([batch(number, every) for number in range(batches)])
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    engine.list_new()
    compiled, used = {}, {}
    for number in range(1, batches + 1):
        engine.ingest(number)
        engine.catch_up()
        compiled[number] = compilations(spark)
        if warm >= WARM and number in (warm, batches):
            used[number] = heap(spark)
    grew = [n for n in range(warm + 1, batches + 1) if compiled[n] > compiled[n - 1]]
    assert grew == [], compiled
    assert not used or used[batches] - used[warm] < 32 * MB, used
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


def test_eight_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is compiled from the fourth batch on. Every third batch makes a window final."""
    run(spark, tmp_path, 8, warm=3, every=100)


@in_full
def test_forty_batches(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 40, WARM, EVERY)


@pytest.mark.bench
def test_five_hundred_batches(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, 500, WARM, EVERY)
