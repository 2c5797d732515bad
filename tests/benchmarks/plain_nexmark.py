"""One query of Nexmark as a plain Structured Streaming job over Delta tables, one file a batch:
python -m tests.benchmarks.plain_nexmark FOLDER QUERY.

The settings are those of ``plain_job``. It has no accounting. Spark has no top N and no distinct
counts over streams, and its processing time is that of the machine, so some queries have no plain
job. Of equal auctions or bids, q5 and q7 find one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tests.benchmarks.plain_job import (
    Start,
    _batches,
    _files,
    _gold,
    _merged,
    _read_silver,
    _session,
    _start,
)

SCHEMA = (
    "event_type int, person struct<id: bigint, name: string, emailAddress: string, creditCard: "
    "string, city: string, state: string, extra: string>, auction struct<id: bigint, itemName: "
    "string, description: string, initialBid: bigint, reserve: bigint, expires: timestamp, seller: "
    "bigint, category: bigint, extra: string>, bid struct<auction: bigint, bidder: bigint, price: "
    "bigint, channel: string, url: string, extra: string>, dateTime timestamp"
)
BID = ("bid.auction", "bid.bidder", "bid.price")
CHANNEL_ID = "'(&|^)channel_id=([^&]*)'"
KNOWN = "lower(bid.channel) in ('apple', 'google', 'facebook', 'baidu')"


def main(folder: Path, query: str) -> None:
    spark = _session(folder)
    inbox = folder / "inbox"
    inbox.mkdir()
    values = _files(spark).option("maxFilesPerTrigger", 1).text(str(inbox))
    _batches(folder, inbox, values, QUERIES[query], in_turns=False)


def _silver(
    spark: SparkSession,
    folder: Path,
    columns: Sequence[str],
    where: str = "event_type = 2",
    name: str = "silver",
) -> StreamingQuery:
    raw = spark.readStream.format("delta").load(str(folder / "tables/bronze"))
    rows = raw.select(F.from_json("value", SCHEMA).alias("r")).select("r.*")
    return _start(rows.where(where).selectExpr(*columns), folder, name)


def _hops(spark: SparkSession, folder: Path) -> StreamingQuery:
    window = F.window("event_time", "10 seconds", "2 seconds")
    counts = _read_silver(spark, folder).groupBy(window, "auction").agg(F.count("*").alias("num"))
    # The first windows end batches after the query that reads them has begun.
    empty = spark.createDataFrame([], counts.schema)
    empty.write.format("delta").save(str(folder / "tables/gold"))
    return _start(counts, folder, "gold")


def _hottest(spark: SparkSession, folder: Path) -> StreamingQuery:
    counts = spark.readStream.format("delta").load(str(folder / "tables/gold"))
    ended = counts.withColumn("ended", F.expr("window.end - interval 1 microsecond"))
    groups = ended.withWatermark("ended", "4 seconds").groupBy(F.window("ended", "2 seconds"))
    hottest = groups.agg(F.expr("max_by(auction, num) as auction"), F.max("num").alias("num"))
    return _start(hottest, folder, "hottest")


def _highest(rows: DataFrame) -> DataFrame:
    whole = "max_by(struct(auction, bidder, price, event_time, extra), price) as bid"
    return rows.groupBy(F.window("event_time", "10 seconds")).agg(F.expr(whole))


def _sessions(rows: DataFrame) -> DataFrame:
    return rows.groupBy(F.session_window("event_time", "10 seconds"), "bidder").count()


def _statistics(rows: DataFrame) -> DataFrame:
    measures = (
        *("count(*) as total_bids", "min(price) as min_price", "max(price) as max_price"),
        *("avg(price) as avg_price", "sum(price) as sum_price"),
        "count(*) filter (where price < 10000) as rank1",
        "count(*) filter (where price >= 10000 and price < 1000000) as rank2",
        "count(*) filter (where price >= 1000000) as rank3",
    )
    return rows.groupBy(F.window("event_time", "1 day"), "auction").agg(*map(F.expr, measures))


def _last(rows: DataFrame) -> DataFrame:
    whole = "max_by(struct(price, channel, url, event_time, extra), event_time) as bid"
    return rows.groupBy("auction", "bidder").agg(F.expr(whole))


def _sellers(spark: SparkSession, folder: Path) -> StreamingQuery:
    def read(table: str, columns: str) -> DataFrame:
        rows = spark.readStream.format("delta").load(str(folder / "tables" / table))
        timed = rows.withWatermark("event_time", "4 seconds")
        return timed.select("*", F.window("event_time", "10 seconds")).selectExpr(*columns.split())

    persons = read("persons", "id name window").dropDuplicates(["id", "window"])
    sellers = read("silver", "seller window").dropDuplicates(["seller", "window"])
    pairs = persons.join(
        sellers.withColumnRenamed("window", "other"), F.expr("id = seller and window = other")
    )
    return _start(pairs.select("id", "name", "window"), folder, "gold")


def _only(*columns: str, where: str = "event_type = 2") -> Sequence[Start]:
    return (partial(_silver, columns=columns, where=where),)


_TIME = "dateTime as event_time"
_BIDS = partial(_silver, columns=("bid.*", _TIME))
_PERSONS = partial(_silver, columns=("person.*", _TIME), where="event_type = 0", name="persons")
_AUCTIONS = partial(_silver, columns=("auction.*", _TIME), where="event_type = 1")

QUERIES: Mapping[str, Sequence[Start]] = {
    "q0": _only(*BID, "dateTime", "bid.extra"),
    "q1": _only("bid.auction", "bid.bidder", "0.908 * bid.price as price", "dateTime", "bid.extra"),
    "q2": _only("bid.auction", "bid.price", where="event_type = 2 and bid.auction % 123 = 0"),
    "q5": (_BIDS, _hops, _hottest),
    "q7": (_BIDS, partial(_gold, totals=_highest)),
    "q8": (_PERSONS, _AUCTIONS, _sellers),
    "q11": (_BIDS, partial(_gold, totals=_sessions)),
    "q14": _only(
        *("bid.auction", "bid.bidder", "0.908 * bid.price as price", "dateTime", "bid.extra"),
        "case when hour(dateTime) between 8 and 18 then 'dayTime' when hour(dateTime) <= 6 or "
        "hour(dateTime) >= 20 then 'nightTime' else 'otherTime' end as bidTimeType",
        "length(bid.extra) - length(replace(bid.extra, 'c', '')) as c_counts",
        where="event_type = 2 and 0.908 * bid.price > 1000000 and 0.908 * bid.price < 50000000",
    ),
    "q17": (_BIDS, partial(_gold, totals=_statistics)),
    "q18": (_BIDS, partial(_merged, totals=_last)),
    "q21": _only(
        *(*BID, "bid.channel"),
        "case lower(bid.channel) when 'apple' then '0' when 'google' then '1' "
        "when 'facebook' then '2' when 'baidu' then '3' "
        f"else regexp_extract(bid.url, {CHANNEL_ID}, 2) end as channel_id",
        where=f"event_type = 2 and ({KNOWN} or bid.url rlike {CHANNEL_ID})",
    ),
    "q22": _only(
        *(*BID, "bid.channel"),
        *(f"get(split(bid.url, '/'), {place}) as dir{place - 2}" for place in (3, 4, 5)),
    ),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
