"""Actions on a stream, from Airflow's trigger form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.decision_operator import REJECT, RELEASE
from headgate.airflow.operators.rows_approval import Question, Questions, asked
from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.operators.verb_operator import run_verb
from headgate.commands import pipeline_command, rendered
from headgate.supervision.launcher import Launcher, Stream

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.declaration.model import Pipeline

Action = Literal[
    "restart",
    "start",
    "stop",
    "savepoint",
    "stop with savepoint",
    "start from savepoint",
    "take over",
    "release",
    "reject",
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
    "release": "Release: let gold versions that rules hold become visible; shows their rows first",
    "reject": "Reject: give up a replay or backfill that rules hold; shows its rows first",
    "replay late rows": "Replay late rows: fold them into the final rows of gold",
}
"""The text that the trigger form shows for each action."""
RESTORE: Action = "start from savepoint"
REPLAY: Action = "replay late rows"


class ControlOperator(StreamTask):
    """Performs one ``action`` on a stream. ``savepoint`` is the id of the savepoint to start from,
    or ``latest``; it is empty for every other action. ``table`` is the gold table whose late rows
    are replayed, or whose held version is released or rejected; empty for all, and for every other
    action. Returns the question that a person has to answer first, if there is one. Fails before
    any change if these arguments do not fit together, there is no such savepoint or table, or a
    stream that is stopped could not be started again, such as without one of the ``connections``.

    A stopped stream stays stopped until it is started again: its supervisor does not start it.
    """

    template_fields: Sequence[str] = (*StreamTask.template_fields, "action", "savepoint", "table")

    def __init__(self, *, action: str, savepoint: str = "", table: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.action = action
        self.savepoint = savepoint
        self.table = table

    def execute(self, context: Context) -> Questions:
        stream, launcher = self._stream, self._launcher
        if (why := refusal(self.action, self.savepoint, self.table)) is not None:
            message = f"{self.name}: {why}"
            if self.action == RESTORE:
                message += f"\n{rendered(pipeline_command('savepoint list'), stream.place)}"
            raise AirflowFailException(message)
        if self.action in (RELEASE, REJECT):
            return asked(context, self._question())
        done = self._replay() if self.action == REPLAY else self._control(stream, launcher)
        self.log.info("%s: %s", self.name, done)
        return []

    def _control(self, stream: Stream, launcher: Launcher) -> str:
        """Start or stop the stream. Returns what was done."""
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
        return ", ".join(done)

    def _question(self) -> Question:
        """Asks about the held versions of a table, or of all. Raises AirflowFailException if none
        is held, and what ``rejectable`` raises if none can be rejected."""
        from headgate.airflow.questions import of_rejection, of_release
        from headgate.insight.status.held_versions import held_versions, only_rejectable
        from headgate.lake.storage.documents import encoded

        declared, layout = self._declared(), self._stream.layout
        wanted = self._tables(declared)
        held = [each for each in held_versions(layout, declared) if each.hold.table in wanted]
        if not held:
            raise AirflowFailException(f"{self.name}: no such gold table is held by its rules")
        if self.action == REJECT:
            held = only_rejectable(declared, layout, held)
        subject, text = {
            RELEASE: (f"Release gold of {self.name} although it breaks rules?", of_release),
            REJECT: (f"Give up what the rules of {self.name} hold?", of_rejection),
        }[self.action]
        about = [encoded(each.hold) | {"what": each.what} for each in held]
        return Question(
            subject=subject,
            text=text(declared, held, self._stream.place),
            about={"action": self.action, "held": about},
        )

    def _tables(self, declared: Pipeline) -> list[str]:
        """The names of the gold tables that are meant. Raises AirflowFailException."""
        wanted = self.table.removeprefix("gold.")
        if wanted and wanted not in declared.gold:
            names = ", ".join(f"gold.{name}" for name in declared.gold)
            raise AirflowFailException(
                f"{self.name}: there is no gold table {self.table!r}; there are: {names}"
            )
        return [wanted] if wanted else [*declared.gold]

    def _replay(self) -> str:
        """Ask the stream's driver to replay late rows: it does so between two batches, or when it
        starts. Raises AirflowFailException, and asks for nothing, if a replay would take back what
        a published backfill has corrected."""
        from headgate.flow.operations.late_replay import replay_document
        from headgate.lake.control.requests import send_request

        now, layout, declared = datetime.now(UTC), self._stream.layout, self._declared()
        tables = [name for name in self._tables(declared) if name in declared.with_late_rows]
        if not tables:
            raise AirflowFailException(
                f"{self.name}: {self.table} reads a gold table, so it has no late rows of its own; "
                "name that table"
            )
        for name in tables:
            self._require_not_corrected(name)
        for name in tables:
            send_request(layout, "late_replay", replay_document(name, by="Airflow"), now)
        named = ", ".join(f"gold.{name}" for name in tables)
        return f"late rows of {named} are replayed between two batches"

    def _require_not_corrected(self, name: str) -> None:
        """Spark compares results with their definition, so the command does it, in a process of its
        own. It is needed only if a backfill has changed the table."""
        from headgate.declaration.kinds import GOLD
        from headgate.lake.tables.payloads.gold import GoldPayload
        from headgate.lake.tables.table import Table

        gold = Table(self._stream.layout.storage, GOLD.path(name), pipeline=self.name)
        if not gold.exists or not GoldPayload.of(gold.refresh()).backfills:
            return
        words = ("late", "replay", self.file, f"gold.{name}", "--root", self.root, "--dry-run")
        code, said = run_verb(words, self.log.info, self._variables())
        if code:
            raise AirflowFailException(f"{self.name}: nothing was replayed\n{said}")

    def _check(self, stream: Stream) -> None:
        """Check what can keep the action from being completed after the stream was stopped. Raises
        what a driver would raise about the declaration; for a restart, also about the tables, which
        a restore resets."""
        from headgate.driver.refusing import require_tables

        declared = self._declared()
        if self.action == "restart":
            require_tables(declared, stream.layout)

    def _options(self, stream: Stream) -> tuple[str, ...]:
        """The options of the start. Raises SavepointError if there is no such savepoint; the stream
        is not changed."""
        if self.action == RESTORE:
            from headgate.history.savepoints.store import find_savepoint

            return "--from-savepoint", find_savepoint(stream.layout, self.savepoint).id
        return ("--take-over",) if self.action == "take over" else ()

    def _take(self) -> str:
        from headgate.history.savepoints.store import create_savepoint

        note = "Airflow" if self.action == "savepoint" else "at stop"
        return create_savepoint(self._stream.layout, self._declared(), datetime.now(UTC), note).id


def refusal(action: str, savepoint: str, table: str = "") -> str | None:
    """Why an action cannot be done with or without this savepoint or table; None if it can."""
    if action not in ACTIONS:
        reason = f"{action!r} is not an action" if action else "no action was chosen"
        return f"{reason}; choose one of: {', '.join(ACTIONS)}"
    if action == RESTORE and not savepoint:
        return f"{RESTORE!r} needs a savepoint: its id, or latest. List them:"
    if savepoint and action != RESTORE:
        return f"{action!r} takes no savepoint: leave it empty, or choose {RESTORE!r}"
    if table and action not in (REPLAY, RELEASE, REJECT):
        of_tables = ", ".join(map(repr, (REPLAY, RELEASE, REJECT)))
        return f"{action!r} takes no table: leave it empty, or choose one of {of_tables}"
    return None
