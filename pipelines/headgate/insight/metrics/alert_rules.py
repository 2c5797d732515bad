"""The file of alert rules for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Iterator

from headgate.commands import Place, rendered
from headgate.insight.metrics.alerts import Alert, alerts, metrics_down


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
