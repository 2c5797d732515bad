"""Actions on a stream, from Airflow's trigger form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.release_approval import HELD
from headgate.airflow.operators.stream_task import StreamTask
from headgate.commands import pipeline_command, rendered
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
    "release",
    "replay late rows",
]
ACTIONS: tuple[Action, ...] = get_args(Action)
LABELS: Mapping[Action, str] = {
    "restart": "Restart: end after the batch, then start again",
    "start": "Start",
    "stop": "Stop: end after the batch, and stay stopped",
    "savepoint": "Savepoint: take one, beside the running stream",
    "stop with savepoint": "Stop with savepoint: end after the batch, then take one",
    "start from savepoint": "Start from savepoint: take the tables back to it first",
    "take over": "Take over: start here, and shut out any other driver",
    "release": "Release: show gold versions that rules hold back; asks for approval",
    "replay late rows": "Replay late rows: fold them into the final rows of gold",
}
"""The text that the trigger form shows for each action."""
RESTORE: Action = "start from savepoint"
RELEASE: Action = "release"
REPLAY: Action = "replay late rows"


class ControlOperator(StreamTask):
    """Performs one ``action`` on a stream. ``savepoint`` is the id of the savepoint to start from,
    or ``latest``; it is empty for every other action. ``table`` is the gold table whose late rows
    are replayed; empty for all, and for every other action. Returns what was done. Fails before any
    change if these arguments do not fit together, there is no such savepoint or table, or a stream
    that is stopped could not be started again, such as without one of the ``connections``.

    A stopped stream stays stopped until it is started again: its supervisor does not start it.
    """

    template_fields: Sequence[str] = (*StreamTask.template_fields, "action", "savepoint", "table")

    def __init__(self, *, action: str, savepoint: str = "", table: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.savepoint = savepoint
        self.table = table

    def execute(self, context: Context) -> str:
        stream, launcher = self._stream, self._launcher
        if (why := refusal(self.action, self.savepoint, self.table)) is not None:
            message = f"{self.name}: {why}"
            if self.action == RESTORE:
                message += f"\n{rendered(pipeline_command('savepoint list'), stream.place)}"
            raise AirflowFailException(message)
        if self.action == RELEASE:
            return self._ask(context)
        if self.action == REPLAY:
            return self._replay()
        options = self._options(stream)
        launches = self.action not in ("stop", "stop with savepoint", "savepoint")
        variables = self._variables() if launches else {}
        done = []
        if self.action not in ("start", "take over", "savepoint"):
            if self.action != "stop":
                self._check(stream)
            launcher.stop(stream)
            done.append("stopped")
        if self.action in ("savepoint", "stop with savepoint"):
            done.append(f"savepoint {self._take()}")
        if launches:
            done.append(launcher.launch(stream, options, variables))
        result = f"{self.name}: {', '.join(done)}"
        self.log.info(result)
        return result

    def _ask(self, context: Context) -> str:
        """Pass the held versions to the tasks that follow. Fails if no version is held."""
        from headgate.gates.documents import holds
        from headgate.storage.documents import encoded

        held = [
            encoded(hold) | {"title": hold.title, "what": hold.what, "why": hold.why}
            for hold in holds(self._stream.layout, self._declared())
        ]
        if not held:
            raise AirflowFailException(f"{self.name}: no gold table is held by its rules")
        context["ti"].xcom_push(HELD, held)
        return f"{self.name}: asks for approval"

    def _replay(self) -> str:
        """Ask the stream's driver to replay late rows: it does so between two batches, or when it
        starts. Raises UnmarkedError, before anything is asked, if a table cannot replay any."""
        from headgate.declaration.kinds import LATE
        from headgate.operations.late_replay import meant, require_marks
        from headgate.operations.requests import ask
        from headgate.tables.table import Table

        now, declared = datetime.now(UTC), self._declared().gold
        wanted = self.table.removeprefix("gold.")
        if wanted and wanted not in declared:
            names = ", ".join(f"gold.{name}" for name in declared)
            raise AirflowFailException(
                f"{self.name}: there is no gold table {self.table!r}; there are: {names}"
            )
        tables, layout = [wanted] if wanted else [*declared], self._stream.layout
        for name in tables:
            late = Table(layout.storage, LATE.path(name), pipeline=self.name)
            if late.exists:
                late.refresh()
                require_marks(late)
        for name in tables:
            ask(layout, "late_replay", meant(name, by="Airflow"), now)
        asked = ", ".join(f"gold.{name}" for name in tables)
        return f"{self.name}: late rows of {asked} are replayed between two batches"

    def _check(self, stream: Stream) -> None:
        """Check what can keep the action from being completed after the stream was stopped. Raises
        what a driver would raise about the declaration; for a restart, also about the tables, which
        a restore resets."""
        from headgate.jobs.refusing import require_tables

        declared = self._declared()
        if self.action == "restart":
            require_tables(declared, stream.layout)

    def _options(self, stream: Stream) -> tuple[str, ...]:
        """The options of the start. Raises SavepointError if there is no such savepoint; the stream
        is not changed."""
        if self.action == RESTORE:
            from headgate.savepoints.store import find

            return "--from-savepoint", find(stream.layout, self.savepoint).id
        return ("--take-over",) if self.action == "take over" else ()

    def _take(self) -> str:
        from headgate.savepoints.store import create

        note = "Airflow" if self.action == "savepoint" else "at stop"
        return create(self._stream.layout, self._declared(), datetime.now(UTC), note).id


def refusal(action: str, savepoint: str, table: str = "") -> str | None:
    """Why an action cannot be done with or without this savepoint or table; None if it can."""
    if action not in ACTIONS:
        reason = f"{action!r} is not an action" if action else "no action was chosen"
        return f"{reason}; choose one of: {', '.join(ACTIONS)}"
    if action == RESTORE and not savepoint:
        return f"{RESTORE!r} needs a savepoint: its id, or latest. List them:"
    if savepoint and action != RESTORE:
        return f"{action!r} takes no savepoint: leave it empty, or choose {RESTORE!r}"
    if table and action != REPLAY:
        return f"{action!r} takes no table: leave it empty, or choose {REPLAY!r}"
    return None
