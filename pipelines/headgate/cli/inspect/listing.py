"""``headgate list``: the pipelines that can be found here, with their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.cli import declaration
from headgate.cli.hidden import shown
from headgate.cli.inspect import other_pipelines
from headgate.cli.inspect.status import how_it_ended
from headgate.cli.options import DEFAULT_ROOT, Json, Root
from headgate.cli.output import grid, respond
from headgate.cli.rows import cells
from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.lake.control.driver_requests import paused_since
from headgate.lake.storage.layout import Layout
from headgate.supervision.discovery import Sighting
from headgate.supervision.job_state import JobState, overall_state, probe


def list_pipelines(root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """List the pipelines found by name here, with their states.

    Also lists other pipelines that this user runs on this machine.
    """
    files: dict[str, Path] = {}
    for file in declaration.declarations():
        files.setdefault(file.stem, file)
    around = other_pipelines.find_sightings(files.values(), root)
    listed = [_entry(file, root, around) for file in files.values()]
    names = {entry.get("pipeline") for entry in listed}
    more = [each for each in around if each.is_alive and each.pipeline not in names]
    others = [{"pipeline": each.pipeline, **other_pipelines.as_dict(each)} for each in more]
    table = grid("", "name", "state", "file")
    for entry in listed:
        table.add_row(*cells(entry["name"], _in_words(entry), entry["file"]))
        problem = next(filter(None, map(entry.get, ("problem", "failure", "outage"))), None)
        # If all sources are away, the problem is the outage. Else the others are read.
        away = [f"source {name}: {why}" for name, why in entry.get("unreadable", {}).items()]
        for said in [problem] if problem else away:
            table.add_row(*cells("", "", said))
        for found in entry.get("elsewhere", ()):
            table.add_row(*cells("", other_pipelines.in_words(found, root), found["file"]))
    for other in others:
        where = other_pipelines.in_words(other, root)
        table.add_row(*cells(other["pipeline"], where, other["file"]))
    respond(json, {"pipelines": listed, "others": others}, table)


def _entry(file: Path, root: str, around: Sequence[Sighting]) -> dict[str, Any]:
    about = {"name": file.stem, "file": str(file)}
    try:
        declared = load(file, needs_secrets=False)
    except DeclarationError as error:
        return {**about, "state": "invalid", "problem": str(error.problems[0])}
    about["pipeline"] = declared.name
    layout = Layout.of(root, declared.name)
    try:
        jobs, paused = probe(layout, datetime.now(UTC)), paused_since(layout)
        ended, failure = how_it_ended(layout, jobs)
    except HeadgateError as error:
        return {**about, "state": "damaged", "problem": shown(error.message)}
    others = other_pipelines.others(around, declared.name, file, root, has_run=bool(jobs))
    return {
        **about,
        "state": overall_state(jobs),
        "has_run": bool(jobs),
        "ended": ended,
        "failure": failure and failure.reason,
        "outage": next((job.trouble for job in jobs if job.is_waiting), None),
        "unreadable": _unreadable(jobs, datetime.now(UTC)),
        "paused": paused and paused.isoformat(),
        "elsewhere": [other_pipelines.as_dict(each) for each in others],
    }


def _unreadable(jobs: Sequence[JobState], now: datetime) -> dict[str, str]:
    """Why sources cannot be read now, by name."""
    found: dict[str, str] = {}
    for job in jobs:
        for name, source in job.sources.items():
            if not job.is_alive or source.is_readable:
                continue
            outage = source.outage.said(now) if source.outage else ""
            said = source.failure.reason if source.failure else outage
            found[name] = said
    return found


def _in_words(entry: Mapping[str, object]) -> str:
    """The state of a pipeline, and since when it is paused."""
    state, since = str(entry["state"]), entry.get("paused")
    if entry.get("ended") in ("finished", "failed"):
        state = str(entry["ended"])
    elif not entry.get("has_run", True):
        state = "never run here" if entry.get("elsewhere") else "never run"
    if state == "running" and entry.get("outage"):
        state = "waiting"
    if not since:
        return state
    paused = f"{datetime.fromisoformat(str(since)):%F %T}Z"
    return f"paused since {paused}" if state == "paused" else f"{state}, paused since {paused}"
