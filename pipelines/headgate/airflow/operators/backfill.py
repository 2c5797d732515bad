"""Computes an interval of gold again, in a process of its own, and publishes what differs."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)

from headgate import exit_codes
from headgate.airflow.gold_table import gold_asset
from headgate.airflow.operators.tables_task import TablesTask
from headgate.supervision import hours
from headgate.supervision.local import HEADGATE

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.backfill.report import Report

FROM, TO = "{{ data_interval_start.isoformat() }}", "{{ data_interval_end.isoformat() }}"
"""The interval of a run."""

Then = Literal["verify", "show", "publish"]


class IntervalTask(TablesTask):
    """A task on the event times ``[begin, end)``: ISO times with a zone."""

    template_fields: Sequence[str] = ("begin", "end")

    def __init__(self, *, begin: str = FROM, end: str = TO, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.begin, self.end = begin, end

    def _headgate(self, verb: str, *arguments: str) -> int:
        """Run a verb over the interval; its output goes to the task log, line by line. Returns its
        exit code. Raises AirflowException, so that Airflow tries again, if it was killed."""
        name, *more = verb.split()
        command = [*HEADGATE, name, *more, self.file, *arguments]
        command += ["--from", self.begin, "--to", self.end, "--root", self.root]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.log.info(line.rstrip("\n"))
        if process.returncode < 0:
            raise AirflowException(f"{verb} was ended by signal {-process.returncode}")
        return process.returncode


class ReplayInterval(IntervalTask):
    """Replays the late rows of ``tables`` in the interval. Returns those that had some."""

    def __init__(self, *, tables: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tuple(tables)

    def execute(self, context: Context) -> list[str]:
        self._opened()
        before = self._replayed()
        for table in self.tables:
            if code := self._headgate("late replay", f"gold.{table}", "--note", _note(context)):
                raise AirflowFailException(f"gold.{table}: exit code {code}; the log says why")
        after = self._replayed()
        return [table for table in self.tables if after[table] != before[table]]

    def _replayed(self) -> dict[str, int]:
        from headgate.declaration.kinds import GOLD
        from headgate.tables.table import Table

        declared, layout = self._opened()
        tables = {
            name: Table(layout.storage, GOLD.path(name), pipeline=declared.name)
            for name in self.tables
        }
        return {name: table.refresh().total.get("replayed", 0) for name, table in tables.items()}


class BackfillInterval(IntervalTask):
    """Computes the interval again and compares; the parity report is in the task log. ``then``:
    ``verify`` fails if a row differs, ``show`` leaves the decision to others, ``publish`` publishes
    what differs. An interval without data is no failure. Returns ``differing``, the tables that
    differ, and ``published``, those that were published. ``declaration`` is a file with other
    formulas, beside the pipeline's own; empty for none."""

    template_fields: Sequence[str] = (*IntervalTask.template_fields, "declaration")

    def __init__(
        self, *, then: Then, declaration: str = "{{ params.declaration or '' }}", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.then, self.declaration = then, declaration

    def execute(self, context: Context) -> dict[str, Any]:
        self._opened()
        began = datetime.now(UTC)
        options = {"verify": ["--verify"], "show": [], "publish": ["--publish"]}[self.then]
        if self.then == "publish":
            options += ["--note", _note(context)]
        if self.declaration:
            options += ["--declaration", str(Path(self.file).parent / self.declaration)]
        code = self._headgate("backfill", *options)
        report = self._report(began) if code in (exit_codes.OK, exit_codes.FAILED) else None
        if code == exit_codes.FAILED and report is not None and report.verdict == "empty":
            self.log.info("no window of [%s, %s) has data", self.begin, self.end)
            code = exit_codes.OK
        if code == exit_codes.DIFFERS:
            raise AirflowFailException(
                f"gold of [{self.begin}, {self.end}) differs from bronze: the log has the report"
            )
        if code:
            raise AirflowFailException(f"exit code {code}; the log says why")
        if report is None:
            raise AirflowFailException("it has left no report; the log says why")
        published = report.differing if report.published is not None else ()
        return {"id": report.id, "differing": [*report.differing], "published": [*published]}

    def _report(self, since: datetime) -> Report | None:
        """The report of the process that this task has run."""
        from headgate.backfill.reports import reports

        _, layout = self._opened()
        begin, end = (datetime.fromisoformat(each) for each in (self.begin, self.end))
        found = (each for each in reports(layout) if (each.begin, each.end) == (begin, end))
        return next((each for each in found if each.at >= since), None)


class PublishApproval(ApprovalOperator):
    """Asks a person whether what the task ``asks`` found may be published. Skipped if it found
    nothing."""

    def __init__(self, *, name: str, asks: str, **kwargs: Any) -> None:
        found = f"ti.xcom_pull(task_ids='{asks}')"
        super().__init__(
            subject=f"Publish the backfill of {name}?",
            body=(
                f"From {FROM} to {TO}, these gold tables differ from what bronze gives now: "
                f"{{{{ ({found} or {{}}).get('differing', []) | join(', ') }}}}.\n\n"
                f"The log of the task `{asks}` has the report. A savepoint is taken before."
            ),
            **kwargs,
        )
        self.asks = asks

    def execute(self, context: Context) -> Any:
        if not (context["ti"].xcom_pull(task_ids=self.asks) or {}).get("differing"):
            raise AirflowSkipException("no row differs")
        return super().execute(context)


class EmitRebuiltHours(IntervalTask):
    """Emits an asset event of ``table`` for every hour of the interval if one of the tasks
    ``changed`` has changed it, so that what follows runs again; skipped otherwise."""

    def __init__(self, *, table: str, changed: Sequence[str], **kwargs: Any) -> None:
        self.table, self.changed = table, tuple(changed)
        asset = gold_asset(kwargs["name"], table)
        super().__init__(outlets=[asset], **kwargs)

    def execute(self, context: Context) -> None:
        found = context["ti"].xcom_pull(task_ids=self.changed) or ()
        tables = {name for each in found if each for name in _names(each)}
        if self.table not in tables:
            raise AirflowSkipException(f"{self.table} has not changed")
        begin, end = (datetime.fromisoformat(each) for each in (self.begin, self.end))
        keys = hours.between(hours.whole(begin), hours.whole(end + timedelta(hours=1) - _LEAST))
        # Only EmitFinalHours says in an event how far the table is final. A time from here could be
        # older than that of an event that it emits meanwhile.
        context["outlet_events"][gold_asset(self.name, self.table)].add_partitions(list(keys))
        self.log.info("%s has changed: %s", self.table, ", ".join(keys))


_LEAST = timedelta(microseconds=1)


def _names(found: Any) -> Sequence[str]:
    names: Sequence[str] = found["published"] if isinstance(found, dict) else found
    return names


def _note(context: Context) -> str:
    return f"Airflow, run {context['run_id']}"
