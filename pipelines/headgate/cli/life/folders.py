"""Looks at the folders of a run before Spark starts: where events land and where tables lie."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError
from headgate.storage.layout import CONTROL, Layout

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline


class LandingError(HeadgateError, code=exit_codes.SOURCE):
    """The landing folder is missing or cannot be listed."""


class RootError(HeadgateError, code=exit_codes.MACHINE):
    """The folder for tables and logs cannot be used."""


def require_landing(pipeline: Pipeline) -> None:
    """Raises LandingError where there is no landing folder that may be listed."""
    if (remark := look_at_landing(pipeline)) is not None:
        files = pipeline.source.files
        assert files is not None
        raise LandingError(
            remark.partition(" yet")[0],
            f"mkdir -p {shlex.quote(files.path)}\nor mend its path in {pipeline.file}",
        )


def look_at_landing(pipeline: Pipeline) -> str | None:
    """A remark about a landing folder that is still to come.

    Raises LandingError where it is no folder or may not be listed.
    """
    files = pipeline.source.files
    if files is None or "://" in files.path:
        return None
    place = files.path
    folder, remedy = Path(place), f"mend the folder, or its path in {pipeline.file}"
    if folder.is_dir():
        if not os.access(folder, os.R_OK | os.X_OK):
            raise LandingError(f"the landing folder {folder} may not be listed", remedy)
        return None
    if folder.exists():
        raise LandingError(f"the landing folder {folder} is a file", remedy)
    return f"there is no landing folder {folder} yet: files are read once they are in it"


def make_root(layout: Layout) -> None:
    """Make the folder of a pipeline's documents and logs. Raises RootError where that fails."""
    if "://" in layout.storage.root:
        return
    folder = Path(layout.storage.root) / CONTROL / "logs"
    look = shell_command("doctor", "--root", str(Path(layout.storage.root).parent))
    remedy = f"{look}, or choose another --root"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RootError(f"{folder} cannot be made: {error.strerror}", remedy) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RootError(f"{folder} may not be written", remedy)
