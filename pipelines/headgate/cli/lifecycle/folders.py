"""Checks the sources and the root of a run before Spark starts."""

from __future__ import annotations

import os
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.jobs.refusing import require_apart
from headgate.sources.contract import connector_of
from headgate.storage.layout import CONTROL, Layout


def check_sources(pipeline: Pipeline, layout: Layout) -> tuple[str, ...]:
    """Remarks about missing input. Raises SourceError if a source cannot deliver any, or reads from
    the folder in which tables are written."""
    require_apart(pipeline, layout)
    remarks = (
        connector_of(source).remark(source.reads, pipeline.file)
        for source in pipeline.sources.values()
    )
    return tuple(remark for remark in remarks if remark)


def require_input(pipeline: Pipeline, layout: Layout) -> None:
    """Raises SourceError if the folder or topic of a source does not exist yet, or is where tables
    are written."""
    require_apart(pipeline, layout)
    for source in pipeline.sources.values():
        connector_of(source).require_input(source.reads, pipeline.file)


def make_root(layout: Layout) -> None:
    """Create the folder of a pipeline's documents and logs. Raises HeadgateError if that fails."""
    folder = Path(layout.storage.root) / CONTROL / "logs"
    doctor = shell_command("doctor", "--root", str(Path(layout.storage.root).parent))
    remedy = f"{doctor}, or choose another --root"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadgateError(
            f"{folder} cannot be made: {error.strerror}", remedy, code=exit_codes.MACHINE
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise HeadgateError(f"{folder} may not be written", remedy, code=exit_codes.MACHINE)
