"""What a person asks of a stream, from Airflow's trigger form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from headgate.airflow.operators.stream_task import StreamTask
from headgate.spec.load import load
from headgate.supervision.launcher import Stream

if TYPE_CHECKING:
    from airflow.sdk import Context

Action = Literal[
    "restart",
    "start",
    "stop",
    "savepoint",
    "stop with savepoint",
    "start from savepoint",
    "take over",
]
ACTIONS: tuple[Action, ...] = get_args(Action)


class ControlOperator(StreamTask):
    """Does one ``action`` on a stream; ``savepoint`` is the id, or ``latest``, of the one to start
    from. Returns what was done, in words.

    A stop holds until somebody starts the stream again: whoever supervises it leaves it at rest.
    """

    template_fields: Sequence[str] = (*StreamTask.template_fields, "action", "savepoint")

    def __init__(self, *, action: str, savepoint: str = "latest", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.savepoint = savepoint

    def execute(self, context: Context) -> str:
        stream, launcher = self._stream, self._launcher
        done = []
        if self.action not in ("start", "take over", "savepoint"):
            launcher.stop(stream)
            done.append("stopped")
        if self.action in ("savepoint", "stop with savepoint"):
            done.append(f"savepoint {_take(stream, self.action)}")
        if self.action not in ("stop", "stop with savepoint", "savepoint"):
            done.append(launcher.launch(stream, self._options()))
        said = f"{self.name}: {', '.join(done)}"
        self.log.info(said)
        return said

    def _options(self) -> tuple[str, ...]:
        if self.action == "start from savepoint":
            return "--from-savepoint", self.savepoint
        return ("--take-over",) if self.action == "take over" else ()


def _take(stream: Stream, action: str) -> str:
    from headgate.savepoints.store import create

    note = "Airflow" if action == "savepoint" else "at stop"
    return create(stream.layout, load(stream.file), datetime.now(UTC), note).id
