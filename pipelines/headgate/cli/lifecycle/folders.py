"""Creates the folder of a pipeline before Spark starts."""

from __future__ import annotations

import os
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.errors import HeadgateError
from headgate.storage.layout import CONTROL, Layout


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
