"""The tables of metrics and alerts in ``docs/metrics.md``, and the alerts' file.

``python -m headgate.insight.metrics.page`` in a checkout writes them from the declarations that the
code uses. A test fails if they are out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headgate.insight.metrics.alerts import alerts, metrics_down, rules
from headgate.insight.metrics.definitions import GROUPS, Metric, MetricGroup

DOCUMENT = Path("docs/metrics.md")
ALERTS = Path("infra/prometheus/alerts.yml")
_GENERATED = re.compile(r"(<!-- (metrics|alerts): generated -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """The document with its generated parts as they are now."""
    made = {"metrics": "\n".join(_metrics()), "alerts": "\n".join(_alerts())}
    return _GENERATED.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n\n{found[3]}", text)


def _metrics() -> Iterator[str]:
    for group in GROUPS:
        yield from _group(group)


def _group(group: MetricGroup) -> Iterator[str]:
    yield f"\n**{group.title}**\n" if group is not GROUPS[0] else f"**{group.title}**\n"
    yield "| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |"
    for metric in group.metrics:
        labels = ", ".join(metric.labels)
        yield f"| `{metric.name}` | {_type(metric)} | {labels} | {metric.help} |"


def _type(metric: Metric) -> str:
    is_kept = metric.type != "gauge" and metric.durable
    return f"{metric.type}, durable" if is_kept else metric.type


def _alerts() -> Iterator[str]:
    yield "| Alert | Fires when | For | Severity |\n| --- | --- | --- | --- |"
    for alert in (*alerts(), metrics_down()):
        what = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"*\1*", alert.summary)
        what = re.sub(r"\{\{ \$value[^}]*\}\}", "*so much*", what)
        yield f"| `{alert.name}` | {what} | {alert.lasts} | {alert.severity} |"


def main() -> None:
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    ALERTS.parent.mkdir(parents=True, exist_ok=True)
    ALERTS.write_text(rules(), encoding="utf-8")


if __name__ == "__main__":
    main()
