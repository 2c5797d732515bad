"""The plain job: three Structured Streaming queries over Delta tables, tuned, without accounting.

python -m tests.benchmarks.plain_job FOLDER [OPTION…]. Same slices, same tables, same settings where
they apply (shuffle partitions, checkpoint manager, no AQE). It does not keep invalid bytes with a
reason, late rows or counts, and it is not exactly-once over several tables.

Options: ``--in-turns``: before each batch except the first, it waits for a line on standard input.
``--streams``: the queries run side by side until standard input ends, and gold also has open
windows, by MERGE. ``--kafka=SERVERS``: they read the topic ``bids``. ``--operator=NAME``: gold is
written by these queries (``OPERATORS``); default: tumbling.

Spark has no windows of days in a time zone and no windows of a number of rows. ``calendar`` has
days of a fixed offset instead, and ``count`` is a function of ours over Pandas and Spark's state.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from headgate.driver import session
from headgate.driver.session import LocalSessions
from headgate.machine.jars import cached_jars
from tests.benchmarks.headgate_job import FIRST
from tests.benchmarks.measuring import Meter

SCHEMA = (
    "event_id string, auction bigint, bidder bigint, price decimal(18,2), channel string, "
    "url string, event_time timestamp"
)

Start = Callable[[SparkSession, Path], StreamingQuery]
ROWS = 100
"""How many rows a window of ``count`` has."""
HELD = "bids bigint, cents bigint, top_cents bigint"


def main(folder: Path, *options: str) -> None:
    spark = _session(folder)
    inbox = folder / "inbox"
    inbox.mkdir()
    servers = [option.partition("=")[2] for option in options if option.startswith("--kafka=")]
    if servers:
        _stream(folder, _topic(spark, servers[0]))
    elif "--streams" in options:
        _stream(folder, _files(spark).text(str(folder / "landing")))
    else:
        values = _files(spark).option("maxFilesPerTrigger", 1).text(str(inbox))
        named = [option.partition("=")[2] for option in options if option.startswith("--operator=")]
        starts = (_silver, *OPERATORS[named[0] if named else "tumbling"])
        _batches(folder, inbox, values, starts, in_turns="--in-turns" in options)


def _stream(folder: Path, values: DataFrame) -> None:
    queries = [_bronze(values, folder)]
    gold = partial(_merged, totals=_per_minute)
    for start, upstream in ((_silver, "bronze"), (gold, "silver")):
        while not (folder / f"tables/{upstream}/_delta_log/{0:020d}.json").exists():
            time.sleep(0.1)
        queries.append(start(values.sparkSession, folder))
    sys.stdin.read()
    for query in queries:
        query.stop()


def _batches(
    folder: Path, inbox: Path, values: DataFrame, starts: Sequence[Start], *, in_turns: bool
) -> None:
    queries = [_bronze(values, folder)]
    meter = Meter()
    meter.start()
    for number, piece in enumerate(sorted((folder / "landing").glob("*.json"))):
        if number and in_turns:
            sys.stdin.readline()
            meter.start()
        shutil.copy(piece, inbox / f".{piece.name}")
        (inbox / f".{piece.name}").rename(inbox / piece.name)
        queries[0].processAllAvailable()
        for place, start in enumerate(starts, 1):
            if number == 0:
                queries.append(start(values.sparkSession, folder))
            queries[place].processAllAvailable()
        meter.lap()
    for query in queries:
        query.stop()


def _session(folder: Path) -> SparkSession:
    settings = session._settings

    def with_delta(cores: int, scratch: Path) -> dict[str, str]:
        return settings(cores, scratch) | {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Its default of 50 tasks to read a table's log is for large clusters: here it took
            # two thirds of the job's time.
            "spark.databricks.delta.snapshotPartitions": str(cores),
        }

    session._settings = with_delta
    return LocalSessions(2, cached_jars()).start("plain", folder / "scratch")


def _files(spark: SparkSession) -> DataStreamReader:
    return spark.readStream.schema("value string")


def _topic(spark: SparkSession, servers: str) -> DataFrame:
    topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    records = topic.option("subscribe", "bids").option("startingOffsets", "earliest").load()
    return records.select(F.col("value").cast("string"))


def _bronze(values: DataFrame, folder: Path) -> StreamingQuery:
    return _start(values, folder, "bronze")


def _silver(spark: SparkSession, folder: Path) -> StreamingQuery:
    raw = spark.readStream.format("delta").load(str(folder / "tables/bronze"))
    rows = raw.select(F.from_json("value", SCHEMA).alias("r")).select("r.*")
    rows = rows.withColumn("channel", F.lower("channel")).where("auction is not null")
    unique = rows.withWatermark("event_time", "10 seconds").dropDuplicatesWithinWatermark(
        ["event_id"]
    )
    return _start(unique, folder, "silver")


def _totals(rows: DataFrame, *groups: Column) -> DataFrame:
    return rows.groupBy(*groups, "auction").agg(
        F.count("*").alias("bids"), F.sum("price").alias("volume"), F.max("price").alias("top")
    )


def _per_minute(rows: DataFrame) -> DataFrame:
    return _totals(rows, F.window("event_time", "1 minute"))


def _rolled_up(minutes: DataFrame) -> DataFrame:
    rows = minutes.withColumn("begin", F.col("window.start")).withWatermark("begin", "10 seconds")
    return rows.groupBy(F.window("begin", "10 minutes"), "auction").agg(
        F.sum("bids").alias("bids"), F.sum("volume").alias("volume"), F.max("top").alias("top")
    )


def _counted(rows: DataFrame) -> DataFrame:
    cents = rows.selectExpr("auction", "coalesce(bigint(price * 100), 0) as cents")
    return cents.groupBy("auction").applyInPandasWithState(
        _windows_of_rows, f"auction bigint, {HELD}", HELD, "append", GroupStateTimeout.NoTimeout
    )


def _windows_of_rows(
    key: tuple[int], pieces: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    held: tuple[int, int, int] = state.get if state.exists else (0, 0, 0)
    ended = []
    for piece in pieces:
        cents = piece["cents"].to_numpy()
        while len(cents):
            part, cents = np.split(cents, [ROWS - held[0]])
            held = held[0] + len(part), held[1] + int(part.sum()), max(held[2], int(part.max()))
            if held[0] == ROWS:
                ended.append((*key, *held))
                held = (0, 0, 0)
    state.update(held)
    yield pd.DataFrame(ended, columns=["auction", "bids", "cents", "top_cents"])


def _gold(
    spark: SparkSession, folder: Path, totals: Callable[[DataFrame], DataFrame]
) -> StreamingQuery:
    return _start(totals(_read_silver(spark, folder)), folder, "gold")


def _read_silver(spark: SparkSession, folder: Path) -> DataFrame:
    rows = spark.readStream.format("delta").load(str(folder / "tables/silver"))
    return rows.withWatermark("event_time", "10 seconds")


def _rollup(spark: SparkSession, folder: Path) -> StreamingQuery:
    minutes = spark.readStream.format("delta").load(str(folder / "tables/gold"))
    return _start(_rolled_up(minutes), folder, "rollup")


def _pairs(spark: SparkSession, folder: Path) -> StreamingQuery:
    # The best that Spark has for states of this size.
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
    changes = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    spark.conf.set(changes, "true")
    rows, is_first = _read_silver(spark, folder), F.col("channel").isin(*FIRST)
    same = "first.auction = other.auction and first.bidder = other.bidder"
    within = "other.event_time between first.event_time and first.event_time + interval 100 seconds"
    pairs = (
        rows.where(is_first)
        .alias("first")
        .join(
            _read_silver(spark, folder).where(~is_first).alias("other"),
            F.expr(f"{same} and {within}"),
        )
    )
    columns = ("first.auction", "first.bidder", "other.price - first.price as more")
    return _start(pairs.selectExpr(*columns, "other.event_time"), folder, "gold")


def _merged(
    spark: SparkSession, folder: Path, totals: Callable[[DataFrame], DataFrame]
) -> StreamingQuery:
    rows, path = totals(_read_silver(spark, folder)), str(folder / "tables/gold")
    spark.createDataFrame([], rows.schema).write.format("delta").save(path)
    gold = DeltaTable.forPath(spark, path)
    keys = [name for name in rows.columns if name in {"window", "auction", "bidder"}]

    def merge(changed: DataFrame, _: int) -> None:
        same = " and ".join(f"old.{key} = new.{key}" for key in keys)
        merging = gold.alias("old").merge(changed.alias("new"), same)
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = rows.writeStream.outputMode("update").foreachBatch(merge)
    return writer.option("checkpointLocation", str(folder / "checkpoints/gold")).start()


def _start(rows: DataFrame, folder: Path, name: str) -> StreamingQuery:
    writer = rows.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
    return writer.queryName(name).start(str(folder / "tables" / name))


def _appended(window: Callable[[], Column]) -> Start:
    return partial(_gold, totals=lambda rows: _totals(rows, window()))


OPERATORS: Mapping[str, Sequence[Start]] = {
    "tumbling": (partial(_gold, totals=_per_minute),),
    "hopping": (_appended(lambda: F.window("event_time", "1 minute", "30 seconds")),),
    "calendar": (_appended(lambda: F.window("event_time", "1 day", "1 day", "23 hours")),),
    "session": (_appended(lambda: F.session_window("event_time", "20 seconds")),),
    "running": (partial(_merged, totals=_totals),),
    "count": (partial(_gold, totals=_counted),),
    "rollup": (partial(_gold, totals=_per_minute), _rollup),
    "join": (_pairs,),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
