"""Builds the `metrics` of a declaration."""

from __future__ import annotations

from pathlib import Path

from headgate.declaration.loopback import is_loopback
from headgate.declaration.model import MetricsSettings
from headgate.declaration.reading.checked import Report, Section

LOOPBACK = "127.0.0.1"


def build_metrics(section: Section | None, report: Report, project: Path) -> MetricsSettings | None:
    """None without the section. Problems go to ``report``."""
    if section is None:
        return None
    host, token_file = section.text("host", LOOPBACK) or LOOPBACK, section.text("token_file")
    if not is_loopback(host) and token_file is None:
        report.add(
            section.line,
            f"{section.path}.host",
            f"{host} can be reached from other machines: add token_file, or listen at {LOOPBACK}",
        )
    within = section.get("latency_within")
    return MetricsSettings(
        port=section.integer("port", 0) or None,
        host=host,
        token_file=project / token_file if token_file else None,
        latency_within=within.value if within else None,
    )
