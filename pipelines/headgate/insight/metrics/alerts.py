"""The alerts of Prometheus, over the metrics that Headgate serves.

They compare values with the limits that each pipeline serves beside them (``headgate_limit_…``), so
one file suits all pipelines, and stays valid if a declaration changes.
``python -m headgate.insight.metrics.page`` in a checkout writes ``infra/prometheus/alerts.yml``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from headgate.commands import SEE_DAMAGE, Place, pipeline_command, rendered, shell_command
from headgate.declaration.quantities import format_duration
from headgate.insight.status.limits import Check, Limits

Severity = Literal["critical", "warning"]
JOB = "headgate"
"""The name of the scrape job in Prometheus."""


@dataclass(frozen=True)
class Alert:
    """``lasts`` is how long the condition must hold, as Prometheus writes it. ``check`` is the
    health check of the same limit, if there is one. ``command`` shows more (``commands``)."""

    name: str
    expression: str
    summary: str
    command: str = pipeline_command("status")
    check: Check | None = None
    lasts: str = "1m"
    severity: Severity = "warning"


# A pipeline may be scraped from its driver and from `headgate metrics`: max gives one value.
def _limit(name: str) -> str:
    limit = f'headgate_limit_seconds{{limit="{name}"}}'
    return f"on (pipeline) group_left () max by (pipeline) ({limit})"


def _expected(metric: str) -> str:
    return f"on (pipeline, source) group_left () max by (pipeline, source) ({metric})"


def _share(counter: str, outcome: str, limit: str) -> str:
    part = f'sum by (pipeline, table) (increase({counter}{{outcome="{outcome}"}}[{_RECENT}]))'
    whole = f"sum by (pipeline, table) (increase({counter}[{_RECENT}]))"
    ratio = f'max by (pipeline) (headgate_limit_ratio{{limit="{limit}"}})'
    return f"{part} / ({whole} > 0) > on (pipeline) group_left () {ratio}"


_RUNS = "on (pipeline) headgate_running == 1"
# A driver may read one source while another one is away, which has an alert of its own.
_UNLESS_AWAY = (
    "unless on (pipeline, source) "
    "(headgate_outage_timestamp_seconds or headgate_source_failed_timestamp_seconds)"
)
# A driver that waits for a source publishes and makes savepoints meanwhile.
_WORKS = 'on (pipeline) (headgate_running == 1 or headgate_condition{condition="waiting"} == 1)'
_MEANT = "on (pipeline) headgate_meant_to_run == 1"
_RECENT = re.sub(r" ([a-z])[a-z]*", r"\1", format_duration(Limits().recent))
"""Such as 1h: the only limit that is in a query, not a metric."""


def alerts() -> tuple[Alert, ...]:
    """All alerts of pipelines."""
    return (*_progress(), *_input(), *_upkeep())


def _progress() -> Iterator[Alert]:
    yield Alert(
        "HeadgateDown",
        "headgate_meant_to_run == 1 and on (pipeline) sum by (pipeline) "
        '(headgate_condition{condition=~"dead|ended|failed"}) > 0',
        "no driver runs",
        check="freshness",
        severity="critical",
    )
    yield Alert(
        "HeadgateNoProgress",
        "time() - max by (pipeline, driver) (headgate_up_to_date_timestamp_seconds) "
        f"> {_limit('freshness')} and {_MEANT}",
        "{{ $labels.driver }} has neither completed a batch nor been up to date with its input "
        "for {{ $value | humanizeDuration }}",
        check="freshness",
        severity="critical",
    )
    yield Alert(
        "HeadgateOutage",
        "time() - max by (pipeline, source) (headgate_outage_timestamp_seconds) "
        f"> {_limit('outage')}",
        "{{ $labels.source }} has not answered for {{ $value | humanizeDuration }}: the driver "
        "keeps trying, and loses nothing",
        check="outage",
        lasts="15s",
        severity="critical",
    )
    yield Alert(
        "HeadgateLoadOutage",
        f"time() - max by (pipeline) (headgate_load_outage_timestamp_seconds) > {_limit('outage')}",
        "the history of a load has not answered for {{ $value | humanizeDuration }}: the driver "
        "keeps trying, and the stream goes on",
        check="outage",
        lasts="15s",
    )
    yield Alert(
        "HeadgateSourceFailed",
        "time() - max by (pipeline, source) (headgate_source_failed_timestamp_seconds) > 0",
        "{{ $labels.source }} waits for a person, since {{ $value | humanizeDuration }}: it cannot "
        "be read, or its tables cannot continue",
        check="source",
        lasts="15s",
        severity="critical",
    )
    yield Alert(
        "HeadgateBacklog",
        "(max by (pipeline, source) (headgate_backlog_age_seconds) "
        f"> {_limit('backlog')} or max by (pipeline, source) (headgate_backlog_files) "
        f"> on (pipeline) group_left () max by (pipeline) (headgate_limit_files)) and {_MEANT}",
        "the backlog of {{ $labels.source }} is above its limit: {{ $value | humanize }} (seconds "
        "of a topic, or files)",
        check="backlog",
    )
    yield Alert(
        "HeadgateBackpressure",
        f"headgate_backpressure == 1 and {_RUNS}",
        "more input of {{ $labels.source }} arrives than is processed",
        check="backlog",
        lasts="5m",
    )
    yield Alert(
        "HeadgateLatency",
        # A quantile of the histogram would be an estimate between two of its bounds.
        "sum by (pipeline) (rate(headgate_slow_batches_total[5m])) / "
        "(sum by (pipeline) (rate(headgate_arrival_to_gold_seconds_count[5m])) > 0) > 0.05",
        "{{ $value | humanizePercentage }} of the batches take longer from arrival to gold than "
        "the limit",
        lasts="5m",
    )
    yield Alert(
        "HeadgateTrouble",
        "headgate_trouble == 1",
        "{{ $labels.driver }} reports trouble: its source, a sink, a savepoint or a table",
        lasts="10m",
    )


def _input() -> Iterator[Alert]:
    yield Alert(
        "HeadgateNoInput",
        "time() - headgate_last_record_timestamp_seconds "
        f"> {_expected('headgate_expected_input_seconds')} and {_RUNS} {_UNLESS_AWAY} "
        "unless on (pipeline, source) (sum by (pipeline, source) (headgate_backlog_records) > 0 "
        "or sum by (pipeline, source) (headgate_backlog_files) > 0)",
        "no record of {{ $labels.source }} for {{ $value | humanizeDuration }}",
        check="input",
    )
    yield Alert(
        "HeadgateEventTimeLag",
        "headgate_event_time_lag_seconds "
        f"> {_expected('headgate_expected_event_time_lag_seconds')} and {_RUNS} {_UNLESS_AWAY}",
        "the watermark of {{ $labels.source }} is {{ $value | humanizeDuration }} behind",
        check="event_time",
    )
    yield Alert(
        "HeadgateLateShare",
        _share("headgate_pairs_total", "late", "late"),
        "{{ $value | humanizePercentage }} of the rows for {{ $labels.table }} are late",
        pipeline_command("late list"),
        check="late",
        lasts="5m",
    )
    yield Alert(
        "HeadgateQuarantineShare",
        _share("headgate_records_total", "quarantined", "quarantined"),
        "{{ $value | humanizePercentage }} of the records for {{ $labels.table }} are quarantined",
        pipeline_command("quarantine list"),
        check="quarantine",
        lasts="5m",
    )
    yield Alert(
        "HeadgateRejectedShare",
        " or ".join(
            _share(f"headgate_{counted}_total", "rejected", "quarantined")
            for counted in ("records", "items")
        ),
        "{{ $value | humanizePercentage }} of the rows for {{ $labels.table }} are rejected",
        pipeline_command("quarantine list"),
        check="quarantine",
        lasts="5m",
    )


def _upkeep() -> Iterator[Alert]:
    yield Alert(
        "HeadgateFilesSetAside",
        "headgate_files_set_aside > 0",
        "files of {{ $labels.source }} that could not be read, so none of their records is in the "
        "tables: {{ $value }}",
        pipeline_command("files list", "--unread"),
        check="set_aside",
    )
    yield Alert(
        "HeadgateGateHeld",
        "headgate_gate_held == 1",
        "rules hold back {{ $labels.table }}",
        pipeline_command("gate status"),
        check="gate",
    )
    yield Alert(
        "HeadgatePublicationsPaused",
        "headgate_circuit_breaker_open == 1",
        "publications are paused: the newest batches are broken",
        pipeline_command("quarantine list"),
        check="breaker",
    )
    yield Alert(
        "HeadgatePublicationStuck",
        f"(headgate_publication_lag_seconds > {_limit('publication')} "
        "or time() - headgate_publication_stuck_timestamp_seconds "
        f"> {_limit('publication')}) and {_WORKS}",
        "rows have waited for {{ $labels.publication }} for {{ $value | humanizeDuration }}",
        pipeline_command("publication list"),
        check="publications",
    )
    yield Alert(
        "HeadgateDeadLetters",
        "headgate_publication_dead_letters > 0",
        "dead letters of {{ $labels.publication }}, rows that its sink refuses: {{ $value }}",
        pipeline_command("publication list"),
        check="publications",
    )
    yield Alert(
        "HeadgateLedgerUnbalanced",
        "headgate_ledger_differences > 0",
        "checks of the ledger that fail: {{ $value }}",
        pipeline_command("ledger"),
        check="ledger",
        severity="critical",
    )
    yield Alert(
        "HeadgateSavepointOld",
        f"headgate_savepoint_age_seconds > {_limit('savepoint')} and {_WORKS}",
        "the newest savepoint is {{ $value | humanizeDuration }} old",
        pipeline_command("savepoint list"),
    )
    yield Alert(
        "HeadgateNoSavepoint",
        'headgate_limit_seconds{limit="savepoint"} and on (pipeline) headgate_savepoints == 0 '
        f"and {_WORKS}",
        "the declaration has a schedule, and there is no savepoint",
        pipeline_command("savepoint list"),
        lasts="15m",
    )
    yield Alert(
        "HeadgateSavepointDamaged",
        "headgate_savepoints_damaged > 0",
        "damaged savepoints: {{ $value }}",
        pipeline_command("savepoint list"),
    )
    yield Alert(
        "HeadgateUnreadable",
        'headgate_readable{part!="declaration"} == 0',
        "{{ $labels.part }} cannot be read: it may be damaged",
        SEE_DAMAGE,
        severity="critical",
    )
    yield Alert(
        "HeadgateDeclarationInvalid",
        'headgate_readable{part="declaration"} == 0',
        "the declaration has a mistake; a driver that runs goes on with the earlier one",
        pipeline_command("plan"),
    )
    yield Alert(
        "HeadgateMetricsStale",
        "time() - headgate_refreshed_timestamp_seconds > 60",
        "the metrics have not been read for {{ $value | humanizeDuration }}",
    )


def metrics_down() -> Alert:
    """The alert that has no pipeline: nothing else can fire while it does."""
    return Alert(
        "HeadgateMetricsDown",
        f'up{{job="{JOB}"}} == 0',
        "{{ $labels.instance }} does not answer: no other alert of Headgate can fire",
        shell_command("metrics"),
        lasts="2m",
        severity="critical",
    )


def rules() -> str:
    """The file of rules for Prometheus."""
    lines = [
        "# Made by `python -m headgate.insight.metrics.page`; do not edit.",
        "groups:",
        "  - name: headgate",
        "    rules:",
    ]
    for alert in (*alerts(), metrics_down()):
        lines += _lines(alert)
    return "\n".join(lines) + "\n"


def _lines(alert: Alert) -> Iterator[str]:
    has_pipeline = alert.name != "HeadgateMetricsDown"
    about = "{{ $labels.pipeline }}: " if has_pipeline else ""
    place = Place(pipeline="{{ $labels.pipeline }}")
    yield f"      - alert: {alert.name}"
    yield f"        expr: {json.dumps(alert.expression)}"
    yield f"        for: {alert.lasts}"
    yield f"        labels: {{severity: {alert.severity}}}"
    yield "        annotations:"
    yield f"          summary: {json.dumps(about + alert.summary)}"
    yield f"          command: {json.dumps(rendered(alert.command, place))}"
