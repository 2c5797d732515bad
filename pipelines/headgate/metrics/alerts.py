"""The alerts of Prometheus, over the metrics that Headgate serves.

They compare values with the limits that each pipeline serves beside them (``headgate_limit_…``), so
one file suits all pipelines, and stays valid if a declaration changes.
``python -m headgate.metrics.page`` in a checkout writes ``infra/prometheus/alerts.yml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headgate.commands import SEE_DAMAGE, pipeline_command, shell_command
from headgate.declaration.quantities import format_duration
from headgate.supervision.limits import Check, Limits

Severity = Literal["critical", "warning"]
JOB = "headgate"
"""The name of the scrape job in Prometheus."""


@dataclass(frozen=True)
class Alert:
    """``lasts`` is how long the condition must hold, as Prometheus writes it. ``check`` is the
    health check of the same limit, if there is one. ``command`` shows more (``commands``)."""

    name: str
    expression: str
    lasts: str
    severity: Severity
    summary: str
    command: str
    check: Check | None = None


# A pipeline may be scraped from its driver and from `headgate metrics`: max gives one value.
def _limit(name: str) -> str:
    limit = f'headgate_limit_seconds{{limit="{name}"}}'
    return f"on (pipeline) group_left () max by (pipeline) ({limit})"


def _expected(metric: str) -> str:
    return f"on (pipeline, source) group_left () max by (pipeline, source) ({metric})"


def _share(counter: str, outcome: str, limit: str, recent: str) -> str:
    part = f'sum by (pipeline, table) (increase({counter}{{outcome="{outcome}"}}[{recent}]))'
    whole = f"sum by (pipeline, table) (increase({counter}[{recent}]))"
    ratio = f'max by (pipeline) (headgate_limit_ratio{{limit="{limit}"}})'
    return f"{part} / ({whole} > 0) > on (pipeline) group_left () {ratio}"


_RUNS = "on (pipeline) headgate_running == 1"
_MEANT = "on (pipeline) headgate_meant_to_run == 1"


def alerts(limits: Limits | None = None) -> tuple[Alert, ...]:
    """All alerts of pipelines. The times of ``limits`` are served as metrics; only ``recent`` is in
    a query."""
    recent = format_duration((limits or Limits()).recent).replace(" hours", "h")
    recent = recent.replace(" hour", "h").replace(" minutes", "m").replace(" minute", "m")
    return (*_progress(), *_input(recent), *_upkeep())


def _progress() -> Iterator[Alert]:
    yield Alert(
        "HeadgateDown",
        "headgate_meant_to_run == 1 and on (pipeline) sum by (pipeline) "
        '(headgate_condition{condition=~"dead|ended|failed"}) > 0',
        "1m",
        "critical",
        "no driver runs",
        pipeline_command("status"),
        "freshness",
    )
    yield Alert(
        "HeadgateNoProgress",
        "time() - max by (pipeline, driver) (headgate_up_to_date_timestamp_seconds) "
        f"> {_limit('freshness')} and {_MEANT}",
        "1m",
        "critical",
        "{{ $labels.driver }} has neither completed a batch nor been up to date with its input "
        "for {{ $value | humanizeDuration }}",
        pipeline_command("status"),
        "freshness",
    )
    yield Alert(
        "HeadgateBacklog",
        "(max by (pipeline) (headgate_backlog_age_seconds) "
        f"> {_limit('backlog')} or sum by (pipeline) "
        "(max by (pipeline, source) (headgate_backlog_files)) "
        f"> on (pipeline) group_left () max by (pipeline) (headgate_limit_files)) and {_MEANT}",
        "1m",
        "warning",
        "the backlog is above its limit: {{ $value | humanize }} (seconds of a topic, or files)",
        pipeline_command("status"),
        "backlog",
    )
    yield Alert(
        "HeadgateBackpressure",
        f"headgate_backpressure == 1 and {_RUNS}",
        "5m",
        "warning",
        "more input arrives than is processed",
        pipeline_command("status"),
        "backlog",
    )
    yield Alert(
        "HeadgateLatency",
        # A quantile of the histogram would be an estimate between two of its bounds.
        "sum by (pipeline) (rate(headgate_slow_batches_total[5m])) / "
        "(sum by (pipeline) (rate(headgate_arrival_to_gold_seconds_count[5m])) > 0) > 0.05",
        "5m",
        "warning",
        "{{ $value | humanizePercentage }} of the batches take longer from arrival to gold than "
        "the limit",
        pipeline_command("status"),
    )
    yield Alert(
        "HeadgateTrouble",
        "headgate_trouble == 1",
        "10m",
        "warning",
        "{{ $labels.driver }} reports trouble: its source, a sink, or a savepoint that fails",
        pipeline_command("status"),
    )


def _input(recent: str) -> Iterator[Alert]:
    yield Alert(
        "HeadgateNoInput",
        "time() - headgate_last_record_timestamp_seconds "
        f"> {_expected('headgate_expected_input_seconds')} and {_RUNS} unless on (pipeline) "
        "(sum by (pipeline) (headgate_backlog_records) > 0 "
        "or sum by (pipeline) (headgate_backlog_files) > 0)",
        "1m",
        "warning",
        "no record of {{ $labels.source }} for {{ $value | humanizeDuration }}",
        pipeline_command("status"),
        "input",
    )
    yield Alert(
        "HeadgateEventTimeLag",
        "headgate_event_time_lag_seconds "
        f"> {_expected('headgate_expected_event_time_lag_seconds')} and {_RUNS}",
        "1m",
        "warning",
        "the watermark of {{ $labels.source }} is {{ $value | humanizeDuration }} behind",
        pipeline_command("status"),
        "event_time",
    )
    yield Alert(
        "HeadgateLateShare",
        _share("headgate_pairs_total", "late", "late", recent),
        "5m",
        "warning",
        "{{ $value | humanizePercentage }} of the rows for {{ $labels.table }} are late",
        pipeline_command("late list"),
        "late",
    )
    yield Alert(
        "HeadgateQuarantineShare",
        _share("headgate_records_total", "quarantined", "quarantined", recent),
        "5m",
        "warning",
        "{{ $value | humanizePercentage }} of the records for {{ $labels.table }} are quarantined",
        pipeline_command("quarantine list"),
        "quarantine",
    )
    yield Alert(
        "HeadgateRejectedShare",
        _share("headgate_records_total", "rejected", "quarantined", recent),
        "5m",
        "warning",
        "{{ $value | humanizePercentage }} of the records for {{ $labels.table }} are rejected",
        pipeline_command("quarantine list"),
        "quarantine",
    )


def _upkeep() -> Iterator[Alert]:
    yield Alert(
        "HeadgateGateHeld",
        "headgate_gate_held == 1",
        "1m",
        "warning",
        "rules hold back {{ $labels.table }}",
        pipeline_command("gate status"),
        "gate",
    )
    yield Alert(
        "HeadgatePublicationsPaused",
        "headgate_circuit_breaker_open == 1",
        "1m",
        "warning",
        "publications are paused: the newest batches are broken",
        pipeline_command("quarantine list"),
        "breaker",
    )
    yield Alert(
        "HeadgatePublicationStuck",
        f"(headgate_publication_lag_seconds > {_limit('publication')} "
        "or time() - headgate_publication_stuck_timestamp_seconds "
        f"> {_limit('publication')}) and {_RUNS}",
        "1m",
        "warning",
        "rows have waited for {{ $labels.publication }} for {{ $value | humanizeDuration }}",
        pipeline_command("publication list"),
        "publications",
    )
    yield Alert(
        "HeadgateDeadLetters",
        "headgate_publication_dead_letters > 0",
        "1m",
        "warning",
        "dead letters of {{ $labels.publication }}, rows that its sink refuses: {{ $value }}",
        pipeline_command("publication list"),
        "publications",
    )
    yield Alert(
        "HeadgateLedgerUnbalanced",
        "headgate_ledger_differences > 0",
        "1m",
        "critical",
        "{{ $value }} checks of the ledger fail",
        pipeline_command("ledger"),
        "ledger",
    )
    yield Alert(
        "HeadgateSavepointOld",
        f"headgate_savepoint_age_seconds > {_limit('savepoint')} and {_RUNS}",
        "1m",
        "warning",
        "the newest savepoint is {{ $value | humanizeDuration }} old",
        pipeline_command("savepoint list"),
    )
    yield Alert(
        "HeadgateNoSavepoint",
        'headgate_limit_seconds{limit="savepoint"} and on (pipeline) headgate_savepoints == 0 '
        f"and {_RUNS}",
        "15m",
        "warning",
        "the declaration has a schedule, and there is no savepoint",
        pipeline_command("savepoint list"),
    )
    yield Alert(
        "HeadgateSavepointDamaged",
        "headgate_savepoints_damaged > 0",
        "1m",
        "warning",
        "{{ $value }} savepoints are damaged",
        pipeline_command("savepoint list"),
    )
    yield Alert(
        "HeadgateUnreadable",
        'headgate_readable{part!="declaration"} == 0',
        "1m",
        "critical",
        "{{ $labels.part }} cannot be read: it may be damaged",
        SEE_DAMAGE,
    )
    yield Alert(
        "HeadgateDeclarationInvalid",
        'headgate_readable{part="declaration"} == 0',
        "1m",
        "warning",
        "the declaration has a mistake; a driver that runs goes on with the earlier one",
        pipeline_command("plan"),
    )
    yield Alert(
        "HeadgateMetricsStale",
        "time() - headgate_refreshed_timestamp_seconds > 60",
        "1m",
        "warning",
        "the metrics have not been read for {{ $value | humanizeDuration }}",
        pipeline_command("status"),
    )


def metrics_down() -> Alert:
    """The alert that has no pipeline: nothing else can fire while it does."""
    return Alert(
        "HeadgateMetricsDown",
        f'up{{job="{JOB}"}} == 0',
        "2m",
        "critical",
        "{{ $labels.instance }} does not answer: no other alert of Headgate can fire",
        shell_command("metrics"),
    )
