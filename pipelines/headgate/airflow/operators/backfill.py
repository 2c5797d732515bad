"""Computes an interval of gold again, in a process of its own, and publishes what differs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
)

from headgate import exit_codes
from headgate.airflow.connections import NoConnectionError
from headgate.airflow.operators.rows_approval import Question, approved, asked
from headgate.airflow.operators.tables_task import TablesTask
from headgate.airflow.operators.verb_operator import run_verb
from headgate.airflow.run_conf import FROM, TO, require_interval
from headgate.commands import pipeline_command, rendered
from headgate.supervision.supervisor import NEEDS_A_PERSON

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.history.backfill.report import BackfillReport

Then = Literal["verify", "show", "publish"]

COMPUTED_BY = "computed_by"
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
        from headgate.history.backfill.open_requests import has_open_request

        declared, layout = self._opened()
        ends = time.monotonic() + PATIENCE
        while has_open_request(layout, declared, _note(context)):
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
    and of the ``declaration``. With ``show``, it returns the question whether the rows may be
    published. The XCom ``COMPUTED_BY`` says which declaration it was.

    ``asks`` is the task that has shown its result, and ``approval`` the one in which a person has
    approved it: only that result is published. ``declaration`` is a file with other formulas, in
    the folder of the pipeline's own file; empty for none."""

    template_fields: Sequence[str] = (*IntervalTask.template_fields, "declaration")

    def __init__(
        self,
        *,
        then: Then,
        asks: str = "",
        approval: str = "",
        declaration: str = "{{ params.declaration or '' }}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.then, self.asks, self.approval = then, asks, approval
        self.declaration = declaration

    def execute(self, context: Context) -> Any:
        require_interval(self.dag_id, self.begin, self.end)
        self._await_earlier(context)
        meant = approved(context, self.asks, self.approval)[0] if self.asks else None
        began = datetime.now(UTC)
        options = self._options(context, meant)
        code = self._headgate("backfill", "--by-end", *options, variables=self._needed())
        kept = code in (exit_codes.OK, exit_codes.FAILED, exit_codes.DIFFERS)
        report = self._report(began) if kept else None
        if code == exit_codes.FAILED and report is not None and report.result == "empty":
            self.log.info("no window that ends in (%s, %s] has data", self.begin, self.end)
            code = exit_codes.OK
        if code == exit_codes.DIFFERS and self.asks and report and not report.differing:
            self.log.info("gold has the computed rows already, so nothing is published")
            code = exit_codes.OK
        if code == exit_codes.DIFFERS:
            raise AirflowFailException(self._difference(report, meant))
        if code:
            raise _failure("", code)
        if report is None:
            raise AirflowFailException("the backfill wrote no report; see the log")
        self.log.info("computed by %s", report.computed_by)
        context["ti"].xcom_push(COMPUTED_BY, report.computed_by)
        found = {
            "id": report.id,
            "differing": [*report.differing],
            "published": [*report.taken_over],
            "declaration": report.declaration,
            "backfilled": {each.table: each.backfilled for each in report.tables},
        }
        if self.then != "show":
            return found
        return asked(context, self._question(report, found) if report.differing else None)

    def _needed(self) -> dict[str, str]:
        """The values of ``connections``. Raises AirflowFailException if one is missing."""
        try:
            return self._variables()
        except NoConnectionError as error:
            raise AirflowFailException(str(error)) from error

    def _question(self, report: BackfillReport, found: dict[str, Any]) -> Question:
        from headgate.airflow.questions import of_publication

        return Question(
            subject=f"Publish the backfill of {self.name}, computed by {report.computed_by}?",
            text=of_publication(report, self.begin, self.end, self._used, self._stream.place),
            about=found,
        )

    @property
    def _used(self) -> Path:
        """The file of the declaration that computes the rows."""
        own = Path(self.file)
        return own.with_name(self.declaration) if self.declaration else own

    def _options(self, context: Context, meant: Any) -> list[str]:
        """The options of the verb. Raises AirflowFailException if there is no such declaration."""
        options = {"verify": ["--verify"], "show": [], "publish": ["--publish"]}[self.then]
        if self.then == "publish":
            options += ["--note", _note(context)]
        for table, digest in (meant or {}).get("backfilled", {}).items():
            options += ["--expect", f"gold.{table}={digest}"]
        if self.declaration:
            if Path(self.declaration).name != self.declaration or not self._used.is_file():
                raise AirflowFailException(
                    f"{self.declaration!r} is not the name of a file beside {self.file}"
                )
            options += ["--declaration", str(self._used)]
        return options

    def _difference(self, report: BackfillReport | None, meant: Any) -> str:
        if meant is None:
            return (
                f"gold differs from bronze in windows that end in ({self.begin}, {self.end}]: "
                "the log has the report"
            )
        was, now = meant["backfilled"], report.tables if report is not None else ()
        what = [f"gold.{each.table}" for each in now if was.get(each.table) != each.backfilled]
        if report is not None and report.declaration != meant["declaration"]:
            what.append("the declaration")
        return (
            "the result differs from the approved one, so nothing was published. Changed since: "
            f"{', '.join(what) or 'see the log'}. To publish, clear the task {self.asks}, and a "
            "person is asked again"
        )

    def _report(self, since: datetime) -> BackfillReport | None:
        """The report of the process that this task has run."""
        from headgate.history.backfill.report import backfill_reports

        _, layout = self._opened()
        times = self._times()
        found = (r for r in backfill_reports(layout) if r.by_end and (r.begin, r.end) == times)
        return next((each for each in found if each.at >= since), None)


def _note(context: Context) -> str:
    return f"Airflow, run {context['run_id']}"


def _failure(what: str, code: int) -> AirflowException:
    """The error of an exit code. Airflow retries, unless only a person can remove the reason."""
    kind = AirflowFailException if code in NEEDS_A_PERSON else AirflowException
    ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
    return kind(f"{what}{ended}; the log says why")
