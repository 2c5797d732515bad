"""Computes an interval of gold again, in a process of its own, and publishes what differs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)

from headgate import exit_codes
from headgate.airflow.connections import NoConnectionError
from headgate.airflow.interval import FROM, TO, require_interval
from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.operators.verb import run_verb
from headgate.commands import pipeline_command, rendered
from headgate.supervision.keeping import NEEDS_A_PERSON

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.backfill.report import Report

Then = Literal["verify", "show", "publish"]

PATIENCE = 120.0  # seconds
_POLL = 1.0


class IntervalTask(TablesTask):
    """A task on the event times ``[begin, end)``: ISO times with a zone."""

    template_fields: Sequence[str] = ("begin", "end")

    def __init__(self, *, begin: str = FROM, end: str = TO, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.begin, self.end = begin, end

    def _times(self) -> tuple[datetime, datetime]:
        return datetime.fromisoformat(self.begin), datetime.fromisoformat(self.end)

    def _headgate(
        self, verb: str, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> int:
        """Run a verb over the interval; its output goes to the task log. Returns its exit code."""
        name, *more = verb.split()
        times = ["--from", self.begin, "--to", self.end]
        words = [name, *more, self.file, *arguments, *times]
        return run_verb([*words, "--root", self.root], self.log.info, variables)[0]

    def _await_earlier(self, context: Context) -> None:
        """Wait until the tables have carried out the requests of earlier attempts of this run, so
        that no request is made twice. Raises AirflowException if they have not within
        ``PATIENCE``."""
        from headgate.backfill.noted import is_open

        declared, layout = self._opened()
        ends = time.monotonic() + PATIENCE
        while is_open(layout, declared, _note(context)):
            if time.monotonic() >= ends:
                look = f"{pipeline_command('status')}; {pipeline_command('gate status')}"
                raise AirflowException(
                    "the request of an earlier attempt is not carried out yet: the stream is "
                    f"stopped, or a gate holds a table: {rendered(look)}"
                )
            time.sleep(_POLL)


class ReplayInterval(IntervalTask):
    """Replays the late rows of ``tables`` in the interval."""

    def __init__(self, *, tables: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tuple(tables)

    def execute(self, context: Context) -> None:
        require_interval(self.dag_id, self.begin, self.end)
        self._await_earlier(context)
        for table in self.tables:
            if code := self._headgate("late replay", f"gold.{table}", "--note", _note(context)):
                raise _failure(f"gold.{table}: ", code)


class BackfillInterval(IntervalTask):
    """Computes the windows that end in the interval again, also those that began before it, and
    compares; the parity report is in the task log. ``then``: ``verify`` fails if a row differs,
    ``show`` leaves the decision to a later task, ``publish`` publishes what differs. An interval
    without data is not a failure. Returns ``differing``, the tables that differ, ``published``,
    those that were published, and what was computed: the digests of the tables (``backfilled``)
    and of the ``declaration``.

    ``approved`` is the task whose result a person has approved: only that result is published.
    ``declaration`` is a file with other formulas, in the folder of the pipeline's own file; empty
    for none."""

    template_fields: Sequence[str] = (*IntervalTask.template_fields, "declaration")

    def __init__(
        self,
        *,
        then: Then,
        approved: str = "",
        declaration: str = "{{ params.declaration or '' }}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.then, self.approved, self.declaration = then, approved, declaration

    def execute(self, context: Context) -> dict[str, Any]:
        require_interval(self.dag_id, self.begin, self.end)
        self._await_earlier(context)
        approved = context["ti"].xcom_pull(task_ids=self.approved) if self.approved else None
        began = datetime.now(UTC)
        options = self._options(context, approved)
        code = self._headgate("backfill", "--by-end", *options, variables=self._needed())
        kept = code in (exit_codes.OK, exit_codes.FAILED, exit_codes.DIFFERS)
        report = self._report(began) if kept else None
        if code == exit_codes.FAILED and report is not None and report.result == "empty":
            self.log.info("no window that ends in (%s, %s] has data", self.begin, self.end)
            code = exit_codes.OK
        if code == exit_codes.DIFFERS and self.approved and report and not report.differing:
            self.log.info("gold has the computed rows already, so nothing is published")
            code = exit_codes.OK
        if code == exit_codes.DIFFERS:
            raise AirflowFailException(self._difference(report, approved))
        if code:
            raise _failure("", code)
        if report is None:
            raise AirflowFailException("the backfill wrote no report; see the log")
        return {
            "id": report.id,
            "differing": [*report.differing],
            "published": [*report.taken_over],
            "declaration": report.declaration,
            "backfilled": {each.table: each.backfilled for each in report.tables},
        }

    def _needed(self) -> dict[str, str]:
        """The values of ``connections``. Raises AirflowFailException if one is missing."""
        try:
            return self._variables()
        except NoConnectionError as error:
            raise AirflowFailException(str(error)) from error

    def _options(self, context: Context, approved: Any) -> list[str]:
        """The options of the verb. Raises AirflowFailException if the approved result is missing,
        or there is no such declaration."""
        options = {"verify": ["--verify"], "show": [], "publish": ["--publish"]}[self.then]
        if self.then == "publish":
            options += ["--note", _note(context)]
        if self.approved:
            if not (approved or {}).get("backfilled"):
                raise AirflowFailException(f"the approved result is missing: {self._ask_again}")
            for table, digest in approved["backfilled"].items():
                options += ["--expect", f"gold.{table}={digest}"]
        if self.declaration:
            file = Path(self.file).parent / self.declaration
            if Path(self.declaration).name != self.declaration or not file.is_file():
                raise AirflowFailException(
                    f"{self.declaration!r} is not the name of a file beside {self.file}"
                )
            options += ["--declaration", str(file)]
        return options

    @property
    def _ask_again(self) -> str:
        return f"clear the task {self.approved}, and a person is asked again"

    def _difference(self, report: Report | None, approved: Any) -> str:
        if not self.approved:
            return (
                f"gold differs from bronze in windows that end in ({self.begin}, {self.end}]: "
                "the log has the report"
            )
        was, now = approved["backfilled"], report.tables if report is not None else ()
        what = [f"gold.{each.table}" for each in now if was.get(each.table) != each.backfilled]
        if report is not None and report.declaration != approved.get("declaration"):
            what.append("the declaration")
        return (
            "the result differs from the approved one, so nothing was published. Changed since: "
            f"{', '.join(what) or 'see the log'}. To publish, {self._ask_again}"
        )

    def _report(self, since: datetime) -> Report | None:
        """The report of the process that this task has run."""
        from headgate.backfill.reports import reports

        _, layout = self._opened()
        times = self._times()
        found = (r for r in reports(layout) if r.by_end and (r.begin, r.end) == times)
        return next((each for each in found if each.at >= since), None)


class PublishApproval(ApprovalOperator):
    """Asks a person whether the differences that the task ``asks`` found may be published. Skipped
    if it found none."""

    def __init__(self, *, name: str, asks: str, **kwargs: Any) -> None:
        super().__init__(
            subject=f"Publish the backfill of {name}?",
            # Airflow keeps the text of the first question when tasks are cleared, so the text has
            # nothing that may change.
            body=(
                f"In windows that end after {FROM} and up to {TO}, gold differs from what bronze "
                f"gives. The log of the task `{asks}` has the report; only what it shows is "
                "published. A savepoint is taken before."
            ),
            **kwargs,
        )
        self.asks = asks

    def execute(self, context: Context) -> Any:
        if not (context["ti"].xcom_pull(task_ids=self.asks) or {}).get("differing"):
            raise AirflowSkipException("no row differs")
        return super().execute(context)


def _note(context: Context) -> str:
    return f"Airflow, run {context['run_id']}"


def _failure(what: str, code: int) -> AirflowException:
    """The error of an exit code. Airflow retries, unless only a person can remove the reason."""
    kind = AirflowFailException if code in NEEDS_A_PERSON else AirflowException
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return kind(f"{what}{ended}; the log says why")
