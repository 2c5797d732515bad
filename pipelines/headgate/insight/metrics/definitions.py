"""Every metric that Headgate serves: its name, type, unit, labels and meaning.

The samples, the tables in ``docs/metrics.md``, the alerts and the dashboard are checked against
this declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

Type = Literal["counter", "gauge", "histogram"]

MOST_PARTITIONS = 100
"""The most series of a source's partitions. If it has more partitions, the last share
``others``."""
OTHERS = "others"
STAGES = ("bronze", "silver", "gold", "publish")

_UNITS = ("seconds", "bytes", "ratio", "records", "files", "batches", "rows", "windows")
_UNIT_OF = {
    "headgate_batch_number": "batches",
    "headgate_publication_dead_letters": "rows",
    "headgate_files_set_aside": "files",
}
"""Where the name does not end with the unit."""
_BATCHES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_LATENCIES = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 900, 3600, 86_400)


@dataclass(frozen=True)
class Metric:
    """``labels`` are those after ``pipeline``, which every metric has. A ``durable`` counter is
    read from tables and documents, and a restart does not reset it; every other one begins at 0
    with the process that serves it. ``buckets`` are the upper bounds of a histogram."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    durable: bool = True
    buckets: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """The unit with which the name ends; empty if there is none."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return _UNIT_OF.get(self.name, last if last in _UNITS else "")

    @property
    def all_labels(self) -> tuple[str, ...]:
        return ("pipeline", *self.labels)


@dataclass(frozen=True)
class MetricGroup:
    """Metrics that one part of a reading gives. ``title`` heads their table in the docs."""

    title: str
    metrics: tuple[Metric, ...]


def _gauge(name: str, labels: str, help_: str) -> Metric:
    return Metric(f"headgate_{name}", "gauge", tuple(labels.split()), help_)


def _counter(name: str, labels: str, help_: str, *, durable: bool = True) -> Metric:
    return Metric(f"headgate_{name}", "counter", tuple(labels.split()), help_, durable)


def _histogram(name: str, labels: str, buckets: tuple[float, ...], help_: str) -> Metric:
    return Metric(f"headgate_{name}", "histogram", tuple(labels.split()), help_, False, buckets)


STREAM = MetricGroup(
    "The stream",
    (
        _gauge("condition", "condition", "1 for the condition that the stream is in, else 0."),
        _gauge(
            "meant_to_run",
            "",
            "Whether the stream has run, has not finished, and was neither stopped nor paused.",
        ),
        _gauge("running", "", "Whether a driver is alive, has opened its tables, and reads."),
        _gauge("paused", "", "Whether a pause was requested."),
        _gauge("trouble", "driver", "Whether the driver reports a problem."),
        _gauge(
            "outage_timestamp_seconds",
            "source",
            "Since when the source does not answer. Only while it does not.",
        ),
        _gauge(
            "load_outage_timestamp_seconds",
            "",
            "Since when the history of a load does not answer. Only while it does not.",
        ),
        _gauge(
            "source_failed_timestamp_seconds",
            "source",
            "Since when the source waits for a person: it cannot be read, or its silver or gold "
            "tables cannot continue. Only while it waits.",
        ),
        _counter("restarts_total", "", "Drivers that replaced a failed or killed one."),
        _gauge(
            "up_to_date_timestamp_seconds",
            "driver",
            "When the driver last completed a batch or had no unread input; else when it began.",
        ),
        _gauge("backlog_records", "source partition", "Unread records of a topic."),
        _gauge(
            "backlog_age_seconds",
            "source partition",
            "How long the oldest unread record has been there, as far as the driver has seen it.",
        ),
        _gauge("backlog_files", "source", "Unread files of a landing folder."),
        _gauge("backlog_bytes", "source", "Size of the unread files."),
        _gauge(
            "backlog_batches",
            "source driver",
            "Batches of the source that the driver of one layer has not processed.",
        ),
        _gauge(
            "backpressure",
            "source",
            "Whether more input arrives than is processed: the backlog of the source grows or "
            "stands still.",
        ),
    ),
)

TABLES = MetricGroup(
    "Records and tables",
    (
        _counter("read_records_total", "source", "Records that bronze has read."),
        _counter(
            "read_bytes_total",
            "source outcome",
            "Size of the values of these records: valid, quarantined or duplicate, as bronze has "
            "decided.",
        ),
        _counter(
            "records_total",
            "source table outcome",
            "What became of each record in a silver table: silver, quarantined, rejected, filtered "
            "or duplicate. The outcomes of a table add up to what it has read. In a table that "
            "explodes an array: quarantined, duplicate, empty, or exploded.",
        ),
        _counter(
            "items_total",
            "source table outcome",
            "What became of each item in a silver table that explodes an array: silver, rejected "
            "or filtered.",
        ),
        _counter(
            "pairs_total",
            "table outcome",
            "Pairs of a silver row and a window: folded into gold, or late when they arrived.",
        ),
        _counter("replayed_pairs_total", "table", "Late pairs that a replay has folded into gold."),
        _counter("final_rows_total", "table", "Rows of gold that became final."),
        _counter(
            "stored_bytes_total",
            "table",
            "Size of the data files that batches have added, as stored.",
            durable=False,
        ),
        _gauge("batch_number", "table", "Last batch id that the table has processed."),
        _gauge("lag_batches", "table", "Batches that the table is behind bronze."),
        _gauge(
            "files_set_aside",
            "source",
            "Files that could not be read: their records are in no table until a person acts.",
        ),
        _gauge("watermark_timestamp_seconds", "source", "The watermark."),
        _gauge("event_time_lag_seconds", "source", "How far the watermark is behind now."),
        _gauge(
            "last_record_timestamp_seconds",
            "source",
            "When bronze last read a record; until there is one, when its table was created.",
        ),
        _gauge(
            "gold_changed_timestamp_seconds",
            "table",
            "When gold last folded a row or made one final.",
        ),
        _gauge(
            "results_age_seconds",
            "table",
            "How long the oldest record has been there that bronze has and the gold table lacks; 0 "
            "if it lacks none.",
        ),
        _histogram(
            "batch_duration_seconds",
            "stage",
            _BATCHES,
            "Bronze: from the start of a batch to its commit. Later stages: from the commit of the "
            "table that they read to their own. One observation for each table.",
        ),
        _histogram(
            "arrival_to_gold_seconds",
            "table",
            _LATENCIES,
            "From the arrival of a batch's oldest record at the source to the commit of gold that "
            "has it. One observation for each batch.",
        ),
        _counter(
            "slow_batches_total",
            "table",
            "Batches that took longer from arrival to gold than the limit `latency`, to which the "
            "`step` of a table is added (10 minutes for `auto`).",
            durable=False,
        ),
        _gauge(
            "publication_lag_commits",
            "publication",
            "Commits with rows that the sink has not got yet; 10,000 at most are counted. Not for "
            "the events of gates.",
        ),
        _gauge("publication_lag_seconds", "publication", "Age of the oldest such commit."),
        _gauge(
            "publication_stuck_timestamp_seconds",
            "publication",
            "Since when the sink takes no rows, reported by the driver. Only while it takes none.",
        ),
        _gauge(
            "publication_dead_letters",
            "publication",
            "Rows that the sink refuses, until they are resent or discarded.",
        ),
    ),
)

UPKEEP = MetricGroup(
    "State, savepoints, accounting",
    (
        _gauge("open_windows", "table", "Windows that can still change."),
        _gauge("open_rows", "table", "Rows of these windows: one per window and key."),
        _gauge("state_bytes", "table", "Size of the files of these rows and their state."),
        _gauge("savepoints", "", "Savepoints of the pipeline."),
        _gauge("savepoints_damaged", "", "Savepoints whose document cannot be read."),
        _gauge("savepoint_timestamp_seconds", "", "When the newest one was taken."),
        _gauge("savepoint_age_seconds", "", "The age of the newest one."),
        _gauge("savepoint_size_bytes", "", "Size of the tables of the newest one."),
        _gauge("savepoint_duration_seconds", "", "How long the newest one took."),
        _gauge(
            "ledger_read_records",
            "table",
            "Records that bronze had read as of the silver table's batch id.",
        ),
        _gauge(
            "ledger_accounted_records",
            "table",
            "Records whose outcome the silver table has counted, as of the same batch id.",
        ),
        _gauge(
            "ledger_difference_records",
            "table",
            "Read minus accounted records. Anything but 0 is an error.",
        ),
        _gauge("ledger_differences", "", "Checks of the ledger that fail, of all tables."),
        _gauge("gate_held", "table", "Whether rules hold back a version of the gold table."),
        _gauge(
            "gate_held_timestamp_seconds", "table", "Since when rules hold back the gold table."
        ),
        _gauge("circuit_breaker_open", "", "Whether publications pause, because input is broken."),
    ),
)

LIMITS = MetricGroup(
    "Limits",
    (
        _gauge(
            "limit_seconds",
            "limit",
            "How much is allowed: freshness, outage, backlog, latency, publication, savepoint.",
        ),
        _gauge("limit_ratio", "limit", "Allowed shares of input: late, quarantined."),
        _gauge("limit_files", "", "Unread files that a landing folder may have."),
        _gauge("expected_input_seconds", "source", "The source's `expect_input_every`."),
        _gauge(
            "expected_event_time_lag_seconds", "source", "The source's `expect_event_time_within`."
        ),
    ),
)

READING = MetricGroup(
    "The reading itself",
    (
        _gauge(
            "readable",
            "part",
            "Whether a part could be read: declaration, stream, tables, state, savepoints, ledger, "
            "gates. If not, its samples are left out.",
        ),
        _gauge("refreshed_timestamp_seconds", "", "When the samples were read."),
        _counter(
            "reading_seconds_total",
            "part",
            "Time that the reading of a part has taken.",
            durable=False,
        ),
    ),
)

GROUPS = (STREAM, TABLES, UPKEEP, LIMITS, READING)
METRICS: Mapping[str, Metric] = {
    metric.name: metric for metric in chain.from_iterable(group.metrics for group in GROUPS)
}
