"""The limits of a pipeline: its declaration's own, else those of the health checks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headgate.declaration.kinds import GOLD
from headgate.declaration.model import LONGEST_PAUSE, GoldTable, Pipeline
from headgate.insight.metrics.samples import Samples
from headgate.insight.status.limits import Limits

SAVEPOINTS_MISSED = 2
"""The number of intervals of the schedule after which the newest savepoint is too old."""
SAVEPOINT_TAKES = timedelta(minutes=1)
"""The time that a savepoint may take, in addition to these intervals."""


def limits_of(declared: Pipeline, limits: Limits) -> Mapping[str, timedelta]:
    """The limits in time, by their names."""
    own = declared.metrics
    found = {
        "freshness": limits.freshness,
        "outage": limits.outage,
        "backlog": limits.backlog,
        "publication": limits.publication,
        "latency": (own.latency_within if own else None) or limits.latency,
    }
    if declared.savepoints is not None:
        found["savepoint"] = SAVEPOINTS_MISSED * declared.savepoints.every + SAVEPOINT_TAKES
    return found


def latency_limits(declared: Pipeline, limits: Limits) -> Mapping[str, timedelta]:
    """The time that a record may take from its arrival to each gold table, by path. A table with a
    step has the time from one step to the next in addition."""
    latency = limits_of(declared, limits)["latency"]
    return {GOLD.path(name): latency + _interval(table) for name, table in declared.gold.items()}


def _interval(table: GoldTable) -> timedelta:
    """The longest time from one step to the next, without the duration of the first one."""
    if table.step is None:
        return timedelta()
    return table.step if isinstance(table.step, timedelta) else LONGEST_PAUSE


def add_limits(samples: Samples, declared: Pipeline, limits: Limits) -> None:
    for name, time in limits_of(declared, limits).items():
        samples.add("limit_seconds", time.total_seconds(), limit=name)
    samples.add("limit_ratio", limits.late, limit="late")
    samples.add("limit_ratio", limits.quarantined, limit="quarantined")
    samples.add("limit_files", limits.files)
    for name, source in declared.sources.items():
        for metric, expected in (
            ("expected_input_seconds", source.expect_input_every),
            ("expected_event_time_lag_seconds", source.expect_event_time_within),
        ):
            if expected is not None:
                samples.add(metric, expected.total_seconds(), source=name)
