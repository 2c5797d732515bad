"""Builds the `metrics` of a declaration."""

from __future__ import annotations

from pathlib import Path

from headgate.declaration.loopback import LOOPBACK, is_loopback
from headgate.declaration.reading.checked import Report, Section, built
from headgate.declaration.settings import MetricsSettings


def build_metrics(section: Section | None, report: Report, project: Path) -> MetricsSettings | None:
    """None without the section. Problems go to ``report``."""
    if section is None:
        return None
    at, token_file = section.get("host"), section.text("token_file")
    is_open = token_file is None and not section.reported("token_file")
    if at is not None and is_open and not is_loopback(at.text):
        message = f"{at.text} can be reached from other machines: add token_file, or listen at"
        report.at(at, f"{message} {LOOPBACK}")
    file = project / token_file if token_file else None
    return built(MetricsSettings, section, token_file=file)
