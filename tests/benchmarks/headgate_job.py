"""Headgate over the slices, one a batch: python -m tests.benchmarks.headgate_job FOLDER [OPTION…].

Options: ``--rules`` (silver has a suite of ten rules), ``--gate`` (gold has a suite),
``--small`` (a batch is ``SMALL_FILES`` files), ``--operator=NAME`` (gold has the tables of
``OPERATORS[NAME]``), and ``--in-turns``: before each batch except the first, it waits for a line on
standard input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.driver import Driver
from headgate.driver.progress import JobProgress
from headgate.driver.task import Task
from headgate.machine.jvm import java
from tests.benchmarks.feed import SMALL_FILES
from tests.benchmarks.measuring import Meter

SOURCE = """
pipeline: bench
sources:
  bids:
    files: {path: landing, format: json, max_files_per_batch: 1}
    record:
      event_id: [event_id]
      event_time: {column: event_time}
      duplicates: {within: 10 minutes}
      schema:
        event_id: string
        auction: bigint
        bidder: bigint
        price: decimal(18,2)
        channel: string
        url: string
        event_time: timestamp
silver:
"""
CLEAN = """  clean_bids:
    from: bids
    columns: {channel: lower(channel)}
    where: auction is not null
"""
MEASURES = "    measures: {bids: count(*), volume: sum(price), top: max(price)}\n"
LATENESS = "    allowed_lateness: 10 seconds\n"


def _table(how: str, lateness: str = LATENESS) -> str:
    """Silver, and gold with one table, which divides its rows as ``how`` says."""
    head = f"{CLEAN}gold:\n  bids_per_minute:\n    from: clean_bids\n"
    return f"{head}    {how}\n    by: [auction]\n{MEASURES}{lateness}"


ROLLUP = f"""
  bids_per_ten_minutes:
    from: bids_per_minute
    window: {{tumbling: 10 minutes}}
    by: [auction]
    measures: {{bids: sum(bids), volume: sum(volume), top: max(top)}}
{LATENESS}"""
FIRST = ("apple", "baidu", "facebook")
JOIN = f"""\
  first_bids:
    from: bids
    columns: {{channel: lower(channel)}}
    where: auction is not null and channel in {FIRST}
  other_bids:
    from: bids
    columns: {{channel: lower(channel)}}
    where: auction is not null and channel not in {FIRST}
gold:
  again:
    join: {{left: first_bids, right: other_bids, on: [auction, bidder], within: 100 seconds}}
    columns:
      auction: first_bids.auction
      bidder: first_bids.bidder
      more: other_bids.price - first_bids.price
{LATENESS}"""
"""At ``feed.RATE`` events a second, a bid may be paired with any of half a million others."""
OPERATORS = {
    "tumbling": _table("window: {tumbling: 1 minute}"),
    "hopping": _table("window: {hopping: {size: 1 minute, every: 30 seconds}}"),
    "calendar": _table("window: {calendar: {unit: day, zone: Europe/Berlin}}"),
    "session": _table("window: {session: 20 seconds}"),
    "running": _table("running: true", lateness=""),
    "count": _table("window: {count: 100}", lateness=""),
    "rollup": _table("window: {tumbling: 1 minute}") + ROLLUP,
    "join": JOIN,
}
DECLARATION = SOURCE + OPERATORS["tumbling"]

# About 0.3 % of the rows break the second rule and are rejected.
RULES = r"""
expectations:
  - {id: bidder, expect: expect_column_values_to_not_be_null, column: bidder}
  - {id: price, expect: expect_column_values_to_be_between, column: price, min_value: 0,
     strict_min: true, max_value: 9900}
  - {id: channel, expect: expect_column_values_to_be_in_set, column: channel,
     value_set: [apple, baidu, facebook, google, channel-5, channel-6], action: warn}
  - {id: url, expect: expect_column_values_to_match_regex, column: url,
     regex: "^https://bids[.]example/[a-z]+/[0-9]+$"}
  - {id: url_plain, expect: expect_column_values_to_not_match_regex, column: url, regex: "\\s"}
  - {id: id_length, expect: expect_column_value_lengths_to_be_between, column: event_id,
     min_value: 5, max_value: 40}
  - {id: auction, expect: expect_column_values_to_be_between, column: auction, min_value: 1}
  - {id: nobody, expect: expect_column_values_to_not_be_in_set, column: bidder,
     value_set: [0, 13], action: warn}
  - {id: price_of_channel, expect: "price < 10000 or channel <> 'google'"}
  - {id: apple, expect: price >= 1, row_condition: channel = 'apple'}
"""
GATE = """
expectations:
  - {id: keys, expect: expect_compound_columns_to_be_unique, column_list: [window_start, auction]}
  - {id: rows, expect: expect_table_row_count_to_be_between, min_value: 1}
  - {id: top, expect: expect_column_max_to_be_between, column: top, max_value: 20000}
  - {id: sums, expect: volume >= top}
"""
SUITES = {"--rules": ("clean_bids", RULES), "--gate": ("bids_per_minute", GATE)}


def declare(folder: Path, options: Collection[str]) -> Path:
    named = [option.partition("=")[2] for option in options if option.startswith("--operator=")]
    text = SOURCE + OPERATORS[named[0] if named else "tumbling"]
    (folder / "expectations").mkdir()
    for option in SUITES.keys() & options:
        table, suite = SUITES[option]
        (folder / "expectations" / f"{table}.yml").write_text(suite)
        text = text.replace(f"  {table}:\n", f"  {table}:\n    expectations: {table}\n")
    if "--small" in options:
        text = text.replace("max_files_per_batch: 1}", f"max_files_per_batch: {SMALL_FILES}}}")
    declaration = folder / "bench.yml"
    declaration.write_text(text)
    return declaration


def main(folder: Path, *options: str) -> None:
    declaration = declare(folder, options)
    meter = Meter()
    meter.start()

    def report(progress: JobProgress) -> None:
        if progress.state == "running":
            meter.lap(compilations=_compilations())
            if "--in-turns" in options:
                sys.stdin.readline()
                meter.start()

    task = Task(load(declaration), str(folder / "lake"), once=True, cores=2)
    Driver(task, report).run()


def _compilations() -> int:
    codegen = java(_session()).org.apache.spark.metrics.source.CodegenMetrics
    return int(codegen.METRIC_COMPILATION_TIME().getCount())


def _session() -> SparkSession:
    """The driver's session. Each thread has its own active session, and this one may have none."""
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    assert spark is not None
    return spark


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)
