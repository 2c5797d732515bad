"""Builds what a pipeline has beside its tables: the metrics, the circuit breaker and backfills."""

from __future__ import annotations

from pathlib import Path

from headgate.declaration.model import BackfillSchedule, CircuitBreaker, MetricsSettings
from headgate.declaration.reading.checked import ProblemReport, Section, built
from headgate.machine.loopback import LOOPBACK, is_loopback


def build_metrics(
    section: Section | None, report: ProblemReport, project: Path
) -> MetricsSettings | None:
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


def build_backfill(airflow: Section | None, report: ProblemReport) -> BackfillSchedule | None:
    """None without the section. Problems go to ``report``."""
    section = airflow.section("backfill") if airflow else None
    publish = section.get("publish") if section else None
    if section and publish and section.text("mode") != "rebuild" and not section.reported("mode"):
        report.at(publish, "has no effect without mode: rebuild")
    return built(BackfillSchedule, section)


def build_circuit_breaker(section: Section | None, report: ProblemReport) -> CircuitBreaker | None:
    """None without the section. Problems go to ``report``."""
    limits = ("refused_above", "records_below")
    if section and not section.values(*limits) and not any(map(section.reported, limits)):
        report.at(section, "needs refused_above or records_below")
    return built(CircuitBreaker, section)
