"""The plain job: three Structured Streaming queries over Delta tables, tuned, without accounting.

python -m tests.benchmarks.plain_job FOLDER [OPTION…]. Same slices, same tables, same settings where
they apply (shuffle partitions, checkpoint manager, no AQE). It does not keep invalid bytes with a
reason, late rows or counts, and it is not exactly-once over several tables.

Options: ``--in-turns``: before each batch except the first, it waits for a line on standard input.
``--streams``: the queries run side by side until standard input ends, and gold also has open
windows, by MERGE. ``--kafka=SERVERS``: they read the topic ``bids``. ``--window=NAME``: gold has
these windows (``WINDOWS``); default: tumbling.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from headgate.driver import session
from headgate.driver.session import LocalSessions
from headgate.machine.jars import cached_jars
from tests.benchmarks.measuring import Meter

SCHEMA = (
    "event_id string, auction bigint, bidder bigint, price decimal(18,2), channel string, "
    "url string, event_time timestamp"
)

Start = Callable[[SparkSession, Path], StreamingQuery]
WINDOWS: Mapping[str, Callable[[], Column]] = {
    "tumbling": lambda: F.window("event_time", "1 minute"),
    "hopping": lambda: F.window("event_time", "1 minute", "30 seconds"),
    "session": lambda: F.session_window("event_time", "20 seconds"),
}


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
        named = [option.partition("=")[2] for option in options if option.startswith("--window=")]
        window = named[0] if named else "tumbling"
        _batches(folder, inbox, values, window, in_turns="--in-turns" in options)


def _stream(folder: Path, values: DataFrame) -> None:
    queries = [_bronze(values, folder)]
    for start, upstream in ((_silver, "bronze"), (_update_gold, "silver")):
        while not (folder / f"tables/{upstream}/_delta_log/{0:020d}.json").exists():
            time.sleep(0.1)
        queries.append(start(values.sparkSession, folder))
    sys.stdin.read()
    for query in queries:
        query.stop()


def _batches(folder: Path, inbox: Path, values: DataFrame, window: str, *, in_turns: bool) -> None:
    queries = [_bronze(values, folder)]
    starts: Sequence[Start] = (_silver, partial(_gold, window=window))
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


def _windows(spark: SparkSession, folder: Path, window: str = "tumbling") -> DataFrame:
    rows = spark.readStream.format("delta").load(str(folder / "tables/silver"))
    windows = rows.withWatermark("event_time", "10 seconds").groupBy(WINDOWS[window](), "auction")
    return windows.agg(
        F.count("*").alias("bids"), F.sum("price").alias("volume"), F.max("price").alias("top")
    )


def _gold(spark: SparkSession, folder: Path, window: str) -> StreamingQuery:
    return _start(_windows(spark, folder, window), folder, "gold")


def _update_gold(spark: SparkSession, folder: Path) -> StreamingQuery:
    totals, path = _windows(spark, folder), str(folder / "tables/gold")
    spark.createDataFrame([], totals.schema).write.format("delta").save(path)
    gold = DeltaTable.forPath(spark, path)

    def merge(changed: DataFrame, _: int) -> None:
        same = "old.window = new.window and old.auction = new.auction"
        merging = gold.alias("old").merge(changed.alias("new"), same)
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = totals.writeStream.outputMode("update").foreachBatch(merge)
    return writer.option("checkpointLocation", str(folder / "checkpoints/gold")).start()


def _start(rows: DataFrame, folder: Path, name: str) -> StreamingQuery:
    writer = rows.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
    return writer.queryName(name).start(str(folder / "tables" / name))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
