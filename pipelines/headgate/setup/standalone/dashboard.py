"""The dashboard that runs beside an Airflow: a process of its tree, with a password of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.insight.dashboard import FOLDER, PORT
from headgate.insight.dashboard.login import passwords
from headgate.machine.process_tree.guard import Child
from headgate.machine.process_tree.ports import HOST, free_port, refusal
from headgate.supervision.local import HEADGATE


@dataclass(frozen=True)
class Beside:
    address: str
    child: Child
    keep: Path

    def password(self) -> str | None:
        """Create the password, right before it is shown; None if an earlier start has shown it."""
        return passwords.made(self.keep)


def beside(files: Sequence[Path], root: Path, *, any_port: bool) -> Beside:
    """A dashboard of some declarations, whose tables are under ``root``. It can start at once, but
    a new one lets nobody in before it has a password."""
    port = free_port() if any_port or refusal(PORT) is not None else PORT
    keep = root / FOLDER
    command = (
        *(*HEADGATE, "dashboard", *map(str, files)),
        # Its output is a log, which must not have the password.
        *("--root", str(root), "--port", str(port), "--awaits-password"),
    )
    passwords.close(keep)
    return Beside(f"http://{HOST}:{port}/", Child(command, prepared=False), keep)
