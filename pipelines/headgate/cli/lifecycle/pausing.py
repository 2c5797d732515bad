"""``headgate pause | resume``: a running pipeline reads nothing new until `resume`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root, command
from headgate.cli.output import respond
from headgate.cli.screen import waiting
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.lake.control.driver_requests import paused_since
from headgate.lake.control.driver_requests import resume as end_pause
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.job_state import overall_state, probe


def pause(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Read nothing new until `resume`. Returns when the current batch has ended.

    A pipeline that does not run is paused when it is started; a message says so.
    """
    declared = declaration.load(pipeline, needs_secrets=False)
    layout = _known(declared, root)
    with waiting("waiting for the current batch to end"):
        since = local.pause(layout)
    state = overall_state(probe(layout, datetime.now(UTC)))
    if state in ("dead", "stopped") and not json:
        is_so = "DEAD: its process ended without releasing its lease" if state == "dead" else state
        print(f"{declared.name}: does not run ({is_so})", file=sys.stderr)
        print(
            "the pause stays in force: the pipeline reads no new data when it is started",
            file=sys.stderr,
        )
        print(command("start"), file=sys.stderr)
    respond(
        json,
        {"pipeline": declared.name, "paused": since.isoformat(), "state": state},
        f"{declared.name}: paused since {_time(since)}, also after a restart, until:",
        command("resume"),
    )


def resume(pipeline: PipelineName, root: Root = DEFAULT_ROOT, json: Json = False) -> None:
    """Continue after `pause`."""
    declared = declaration.load(pipeline, needs_secrets=False)
    layout = _known(declared, root)
    since = end_pause(layout)
    lines = [f"{declared.name}: not paused"]
    if since is not None:
        lines = [f"{declared.name}: resumed; it was paused since {_time(since)}"]
        if not any(job.is_alive for job in probe(layout, datetime.now(UTC))):
            lines.append(f"it does not run: {command('start')}")
    respond(json, {"pipeline": declared.name, "was_paused": since and since.isoformat()}, *lines)


def check_pause(declared: Pipeline, layout: Layout, *, once: bool = False) -> None:
    """Print a warning if the pipeline is paused. Raises HeadgateError for ``once``."""
    if (since := paused_since(layout)) is None:
        return
    message = f"{declared.name} is PAUSED since {_time(since)}: it reads no new data until:"
    remedy = command("resume")
    if once:
        raise HeadgateError(message, remedy, code=exit_codes.PAUSED)
    print(f"{message}\n{remedy}", file=sys.stderr)


def _known(declared: Pipeline, root: str) -> Layout:
    """Raises HeadgateError if the pipeline never ran under ``root``, which may be mistyped."""
    layout = Layout.of(root, declared.name)
    if not probe(layout, datetime.now(UTC)):
        raise HeadgateError(
            f"{declared.name} has never run under {root}",
            remedy=f"{command('start')}, or name its folder with --root",
        )
    return layout


def _time(at: datetime) -> str:
    return f"{at:%F %T}Z"
