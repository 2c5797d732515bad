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
    at, token_file = section.get("host"), section.text("token_file")
    host = at.text if at else LOOPBACK
    is_open = token_file is None and not section.reported("token_file")
    if at is not None and is_open and not is_loopback(host):
        message = f"{host} can be reached from other machines: add token_file, or listen at"
        report.add(at.line, at.path, f"{message} {LOOPBACK}")
    within = section.get("latency_within")
    return MetricsSettings(
        port=section.integer("port", 0) or None,
        host=host,
        token_file=project / token_file if token_file else None,
        latency_within=within.value if within else None,
    )
