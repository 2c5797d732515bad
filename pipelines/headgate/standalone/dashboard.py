"""The dashboard that runs beside an Airflow: a process of its tree, with a password of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.dashboard import FOLDER, PORT
from headgate.dashboard.login import passwords
from headgate.process_tree.order import Child
from headgate.process_tree.ports import HOST, free_port, refusal
from headgate.supervision.local import HEADGATE


@dataclass(frozen=True)
class Beside:
    """``password`` is None if an earlier start has shown it."""

    address: str
    password: str | None
    child: Child
    keep: Path

    def forget(self) -> None:
        """Delete a password that nobody has seen. The next start creates another one."""
        if self.password is not None:
            (self.keep / passwords.FILE).unlink(missing_ok=True)


def beside(files: Sequence[Path], root: Path, *, any_port: bool) -> Beside:
    """A dashboard of some declarations, whose tables are under ``root``."""
    port = free_port() if any_port or refusal(PORT) is not None else PORT
    keep = root / FOLDER
    command = (
        *(*HEADGATE, "dashboard", *map(str, files)),
        *("--root", str(root), "--port", str(port)),
    )
    password = passwords.made(keep)
    return Beside(f"http://{HOST}:{port}/", password, Child(command, prepared=False), keep)
