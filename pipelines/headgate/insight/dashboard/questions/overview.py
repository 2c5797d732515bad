"""The pipelines and their tables, and the ledger of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from headgate.declaration.kinds import GOLD, LATE, QUARANTINE
from headgate.errors import HeadgateError
from headgate.insight.dashboard.questions.about import held, summary
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.ledger import balance
from headgate.insight.status.freshness import freshness
from headgate.insight.status.report import StreamStatus, stream_status
from headgate.insight.status.set_aside import set_aside
from headgate.lake.control.driver_reports import SourceProgress
from headgate.supervision.job_state import probe


def overview(shown: Shown, now: datetime) -> dict[str, Any]:
    """One pipeline. A damaged part does not hide the others: ``problem`` says what is wrong."""
    document: dict[str, Any] = {"pipeline": shown.name, "problem": None, "gold": []}
    try:
        jobs = probe(shown.layout, now)
        status = stream_status(shown.layout, jobs, now) if jobs else None
        document |= {"condition": condition(status)}
        reported = _reported(status) if status is not None else {}
        fresh = freshness(shown.layout, shown.pipeline)
        aside = set_aside(shown.layout, shown.pipeline)
        document |= {
            "sources": [
                {
                    "source": name,
                    "watermark": each.clock and each.clock.isoformat(),
                    "arrived": each.arrived and each.arrived.isoformat(),
                    **_trouble(reported.get(name), now),
                    "quarantined": _rows(shown, QUARANTINE.path(name)),
                }
                for name, each in fresh.sources.items()
            ],
            "gold": [_gold(shown, name) for name in shown.pipeline.gold],
            "set_aside": [f"{files.source}: {files}." for files in aside],
        }
    except HeadgateError as error:
        document["problem"] = error.text(shown.place)
    except OSError as error:
        document["problem"] = f"a file cannot be read: {error}"
    return document


def _reported(status: StreamStatus) -> Mapping[str, SourceProgress]:
    """What is known of the sources. A run that has failed leaves what a person has to repair; its
    outages may be over."""
    if status.is_alive:
        return status.sources
    failed = status.sources.items() if status.ended == "failed" else ()
    return {name: replace(source, outage=None) for name, source in failed}


def condition(status: StreamStatus | None) -> str:
    """What the stream of a pipeline does, in a word."""
    if status is None:
        return "never ran"
    ended = status.condition == "ended" and status.ended in ("failed", "finished", "stopped")
    return str(status.ended if ended else status.condition)


def _trouble(source: SourceProgress | None, now: datetime) -> dict[str, str | None]:
    """Why a source cannot be read now, None if it can, and what a person has to do."""
    if source is not None and source.failure is not None:
        return {"trouble": source.failure.reason, "remedy": source.failure.remedy}
    outage = source.outage if source is not None else None
    return {"trouble": None if outage is None else outage.said(now), "remedy": None}


def ledger(shown: Shown) -> dict[str, Any]:
    """Raises HeadgateError if there are no tables, or one is damaged."""
    found = balance(shown.layout, shown.pipeline)
    differences = [str(each) for each in found.differences]
    return found.as_dict() | {"differences": differences, "rejected": found.rejected}


def _gold(shown: Shown, name: str) -> dict[str, Any]:
    gold = shown.version(GOLD.path(name))
    if gold is None:
        return {"table": name, "exists": False}
    return {
        "table": name,
        "exists": True,
        **summary(shown, name, gold),
        "late_rows": _rows(shown, LATE.path(name)),
        "held": held(shown, name),
    }


def _rows(shown: Shown, path: str) -> int:
    version = shown.version(path)
    return version.rows if version else 0
