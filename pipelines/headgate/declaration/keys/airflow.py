"""The keys of a declaration's `airflow`."""

from __future__ import annotations

from datetime import timedelta

from headgate.declaration.keys.key import YEAR, Key
from headgate.declaration.settings import BackfillSchedule

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
