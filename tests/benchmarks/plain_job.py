"""The plain job: three Structured Streaming queries over Delta tables, tuned, without accounting.

python -m tests.benchmarks.plain_job FOLDER. Same slices, same tables, same settings where they
apply (shuffle partitions, checkpoint manager, no AQE). What it lacks: bytes kept with a reason,
late rows kept, counts, exactly-once over several tables.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headgate.jars import cached_jars
from headgate.jobs import session
from headgate.jobs.session import LocalSessions
from tests.benchmarks.measuring import Meter

SCHEMA = (
    "event_id string, auction bigint, bidder bigint, price decimal(18,2), channel string, "
    "url string, event_time timestamp"
)


def main(folder: Path) -> None:
    spark = _session(folder)
    inbox = folder / "inbox"
    inbox.mkdir()
    queries = [_bronze(spark, folder, inbox)]
    meter = Meter()
    meter.start()
    for number, piece in enumerate(sorted((folder / "landing").glob("*.json"))):
        shutil.copy(piece, inbox / f".{piece.name}")
        (inbox / f".{piece.name}").rename(inbox / piece.name)
        queries[0].processAllAvailable()
        for place, start in enumerate((_silver, _gold), 1):
            if number == 0:
                queries.append(start(spark, folder))
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


def _bronze(spark: SparkSession, folder: Path, inbox: Path) -> StreamingQuery:
    lines = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1)
    return _start(lines.text(str(inbox)), folder, "bronze")


def _silver(spark: SparkSession, folder: Path) -> StreamingQuery:
    raw = spark.readStream.format("delta").load(str(folder / "tables/bronze"))
    rows = raw.select(F.from_json("value", SCHEMA).alias("r")).select("r.*")
    rows = rows.withColumn("channel", F.lower("channel")).where("auction is not null")
    unique = rows.withWatermark("event_time", "10 seconds").dropDuplicatesWithinWatermark(
        ["event_id"]
    )
    return _start(unique, folder, "silver")


def _gold(spark: SparkSession, folder: Path) -> StreamingQuery:
    rows = spark.readStream.format("delta").load(str(folder / "tables/silver"))
    windows = rows.withWatermark("event_time", "10 seconds").groupBy(
        F.window("event_time", "1 minute"), "auction"
    )
    totals = windows.agg(
        F.count("*").alias("bids"), F.sum("price").alias("volume"), F.max("price").alias("top")
    )
    return _start(totals, folder, "gold")


def _start(rows: DataFrame, folder: Path, name: str) -> StreamingQuery:
    writer = rows.writeStream.format("delta").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
    return writer.queryName(name).start(str(folder / "tables" / name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
