"""The keys of what a pipeline has beside its tables: savepoints, limits, metrics and Airflow."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.model import BackfillSchedule, CircuitBreaker, SavepointSchedule
from headgate.declaration.quantities import format_duration
from headgate.machine.loopback import LOOPBACK

SAVEPOINTS = Key(
    "savepoints",
    "section",
    "Savepoints that the running pipeline takes automatically. Without this section it takes none, "
    "and savepoints taken by hand are kept until you delete them.",
    children=(
        Key(
            "every",
            "duration",
            "The time between two savepoints.",
            required=True,
            low=timedelta(seconds=10),
            high=YEAR,
        ),
        Key(
            "keep",
            "integer",
            "This many of the newest savepoints are kept, whatever their age.",
            default=str(SavepointSchedule.keep),
            low=1,
            high=1000,
        ),
        Key(
            "keep_for",
            "duration",
            "Savepoints younger than this are kept too. The last one that can be restored is "
            "always kept.",
            default=format_duration(SavepointSchedule.keep_for),
            low=timedelta(0),
            high=10 * YEAR,
        ),
    ),
)


CIRCUIT_BREAKER = Key(
    "circuit_breaker",
    "section",
    "Publications of gold and late rows pause while the input breaks one of these limits. Bronze, "
    "silver and gold go on. Publications continue by themselves once the newest batches are good.",
    children=(
        Key(
            "refused_above",
            "share",
            "Publications pause while a larger share of the newest records is quarantined, or is "
            "rejected by the rules of a silver table.",
        ),
        Key(
            "records_below",
            "integer",
            "Publications pause while the newest batches together have fewer records.",
            low=1,
            high=10**12,
        ),
        Key(
            "batches",
            "integer",
            "The number of newest batches that count. Until there are as many, nothing pauses.",
            default=str(CircuitBreaker.batches),
            low=1,
            high=1000,
        ),
    ),
)


METRICS = Key(
    "metrics",
    "section",
    "Metrics that the running pipeline serves for Prometheus ([metrics](metrics.md)). You can "
    "change it at any time.",
    children=(
        Key(
            "port",
            "integer",
            "The driver serves `/metrics` at this port; without it, at none.",
            low=1,
            high=65535,
        ),
        Key(
            "host",
            "text",
            "The address to listen at. Any other than this machine's loopback needs `token_file`.",
            default=LOOPBACK,
        ),
        Key(
            "token_file",
            "text",
            "A file with the token that clients must send (`Authorization: Bearer …`). A relative "
            "path begins at the project's folder.",
        ),
        Key(
            "latency_within",
            "duration",
            "How long a record may take from its arrival to gold, before there is an alert.",
            default="5 minutes",
            low=timedelta(milliseconds=100),
            high=YEAR,
        ),
    ),
)


MODES = ("verify", "late", "rebuild")
POLICIES = ("when_equal", "always", "after_approval")
EVERY = (timedelta(hours=1), YEAR)
"""The shortest and the longest interval."""

AIRFLOW = Key(
    "airflow",
    "section",
    "What Airflow does for the pipeline beside its stream. You can change it at any time.",
    children=(
        Key(
            "backfill",
            "section",
            "A DAG `<pipeline>__backfill` computes each interval of gold again from bronze, once "
            "it is final, and compares.",
            children=(
                Key(
                    "every",
                    "duration",
                    "The length of an interval. A run compares the windows that end in its "
                    "interval, also those that began before it. Intervals begin at multiples of "
                    "this length since 1970-01-01 in UTC; those of a backfill that a person "
                    "creates in Airflow begin at its first date.",
                    required=True,
                    low=EVERY[0],
                    high=EVERY[1],
                ),
                Key(
                    "mode",
                    "choice",
                    "`verify`: the run fails if a row differs. `late`: late rows of the interval "
                    "are replayed before. `rebuild`: rows that differ can be published.",
                    default=BackfillSchedule.mode,
                    choices=MODES,
                ),
                Key(
                    "publish",
                    "choice",
                    "With `mode: rebuild`. `when_equal`: nothing that differs is published, the "
                    "run fails. `always`: the rows are published. `after_approval`: they are "
                    "published once a person has seen the report and approved in Airflow.",
                    default=BackfillSchedule.publish,
                    choices=POLICIES,
                ),
            ),
        ),
    ),
)
