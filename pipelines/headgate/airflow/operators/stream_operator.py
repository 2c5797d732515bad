"""Keeps one stream running while its DAG is on, and what it knows from one start of a driver to the
next."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from headgate import exit_codes
from headgate.airflow.connections import NoConnectionError
from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import is_to_stop, name_of, state_of
from headgate.airflow.triggers.stream_trigger import START_AGAIN, StreamTrigger
from headgate.commands import Place, commands_in, rendered, shell_command
from headgate.declaration.quantities import format_duration, plural
from headgate.errors import HeadgateError
from headgate.lake.control.claim import Claim, claim, claimed, give_up, take_up
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.control.driver_requests import StopRequest, request_stop, stop_asked
from headgate.supervision.job_state import JobState, how_ended
from headgate.supervision.launcher import Launcher
from headgate.supervision.supervisor import (
    DOWN,
    NEEDS_A_PERSON,
    Observation,
    RestartPolicy,
    StreamCondition,
    condition_of,
    is_crash,
    observe,
    stop_holds,
    supervisor_step,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True)
class Watch:
    """The token of the claim, the end of this run, the times of crashes, the epoch of the last
    driver that they count, and the times of failures of the machine, which are no crashes."""

    token: str
    until: datetime
    crashes: tuple[datetime, ...] = ()
    counted: int | None = None
    of_machine: tuple[datetime, ...] = ()

    def kept(self) -> dict[str, Any]:
        """The watch as Airflow keeps it while the task is deferred."""
        return {
            "token": self.token,
            "until": self.until.isoformat(),
            "crashes": [at.isoformat() for at in self.crashes],
            "counted": self.counted,
            "of_machine": [at.isoformat() for at in self.of_machine],
        }

    @staticmethod
    def of(
        token: str,
        until: str,
        crashes: Sequence[str],
        counted: int | None,
        of_machine: Sequence[str],
    ) -> Watch:
        """The watch that was ``kept``."""
        times, of = (tuple(map(datetime.fromisoformat, each)) for each in (crashes, of_machine))
        return Watch(token, datetime.fromisoformat(until), times, counted, of)

    def after(
        self,
        failure: Failure | None,
        jobs: Sequence[JobState],
        budget: RestartPolicy,
        now: datetime,
    ) -> Watch:
        """The watch after the driver of ``jobs`` has ended with ``failure``."""
        epoch = epoch_of(jobs)
        if is_crash(failure):
            crashes = (*budget.recent(self.crashes, now), now)
            return replace(self, crashes=crashes, counted=epoch)
        failures = (*budget.recent(self.of_machine, now), now)
        return replace(self, of_machine=failures, counted=epoch)


def epoch_of(jobs: Sequence[JobState]) -> int | None:
    """The epoch of the last driver; None if there was none."""
    return max((job.epoch for job in jobs), default=None)


_LOG_LINES = 20  # lines of the driver's log in the report of a crash
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class StreamOperator(StreamTask):
    """Adopts the stream's driver, or starts one, and watches it from the triggerer.

    The lease, not Airflow, ensures that exactly one driver runs. A driver that dies, ends without a
    request or makes no progress for ``stuck_after`` is replaced, each time after a longer pause.
    ``budget`` limits these restarts; beyond it the task fails with the end of the driver's log. A
    failure of the machine, such as a full disk, does not count: a start is tried for ever. A
    driver that ends for a reason that only a person can remove is not replaced: the task fails at
    once, with the reason and the command to type, and the next run waits until the stream is
    started. The task ends after ``rotate_after``; the next run adopts the driver.

    The task holds the claim while it is deferred, and not on a worker: what fails there, fails by
    itself, and nobody has marked it.
    """

    _token: str | None = None

    def __init__(
        self,
        *,
        interval: timedelta = timedelta(seconds=5),
        stuck_after: timedelta = timedelta(minutes=15),
        rotate_after: timedelta = timedelta(hours=24),
        budget: RestartPolicy | None = None,
        # Retries of the task: for workers that die, and if Airflow wrongly treats the task as
        # failed (a late event of its executor, apache/airflow#71580). ``budget`` limits restarts of
        # the driver.
        retries: int = 10,
        retry_delay: timedelta = timedelta(seconds=10),
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, **kwargs)
        self.interval = interval
        self.stuck_after = stuck_after
        self.rotate_after = rotate_after
        self.budget = budget or RestartPolicy()

    def execute(self, context: Context) -> None:
        now, layout = datetime.now(UTC), self._stream.layout
        by = name_of(context["ti"])
        before = claimed(layout)
        if before is not None and before.by != by:
            state = state_of(*before.by)
            if is_to_stop(before, state, stop_asked(layout), if_deleted=False):
                # The triggerer has not stopped the stream: it is slow, or none runs.
                self.log.info("the run %s is %s: its stream is stopped", before.by[1], state)
                request_stop(layout, before.token)
        reported = None if before is None else before.reported
        watch = Watch(uuid.uuid4().hex, now + self.rotate_after)
        claim(layout, Claim(watch.token, by, now, is_over=True, reported=reported))
        self._token = watch.token
        # Start here, not after a deferral: the task would resume within a second or two, which a
        # busy scheduler takes for a failure (PlainTrigger.SETTLES).
        launcher, failure = self._launcher, last_failure(layout)
        found = condition_of(launcher.probe(self._stream, now), stop_asked(layout), failure)
        # A failure that no supervisor has reported does not prevent a start.
        if supervisor_step(found, failure, reported) != "watch":
            watch = self._start(launcher, watch, found)
        self._watch(watch, reported)

    def resume(self, context: Context, event: dict[str, Any], **kept: Any) -> None:
        """Called on a worker with the event of the trigger."""
        layout, watch = self._stream.layout, Watch.of(**kept)
        token = watch.token
        self._token = token
        held = claimed(layout)
        reported = None if held is None else held.reported
        try:
            give_up(layout, token)
        except OSError as error:
            # Such as a full disk. As long as it lasts, this task waits in the triggerer: if it
            # failed, that would look like a mark.
            self.log.warning("%s: its documents cannot be written: %s", self.name, error)
            self._watch(watch, reported)
        if event["event"] == "rotated":
            self.log.info("%s continues; the next run supervises it", self.name)
            return
        failure = last_failure(layout)
        if event["event"] == "failed" and failure:
            self._report(token, failure)
        found = self._condition_after(event, failure)
        if event["event"] == "down" and found in DOWN:
            watch = self._start(self._launcher, watch, found)
        else:
            self.log.info("%s is %s now", self.name, found)
        self._watch(watch, reported)

    def _condition_after(
        self, event: Mapping[str, Any], failure: Failure | None
    ) -> StreamCondition:
        """The condition now. Since the trigger's ``event``, the driver may have recovered (as after
        a machine has slept), or another one may have been started."""
        now, before = datetime.now(UTC), None
        if event.get("condition") == "stuck":
            before = Observation("stuck", event.get("fingerprint", ""), _LONG_AGO)
        return observe(
            self._launcher.probe(self._stream, now),
            now,
            before,
            stop_asked=stop_asked(self._stream.layout),
            stuck_after=self.stuck_after,
            failure=failure,
        ).condition

    def on_kill(self) -> None:
        """Called when the task ends on a worker from outside. If a person has marked it, the claim
        says so to the next run, which stops the stream; another attempt of this run replaces the
        claim."""
        if self._token is not None:
            with suppress(HeadgateError, OSError):
                take_up(self._stream.layout, self._token)

    def _start(self, launcher: Launcher, watch: Watch, found: StreamCondition) -> Watch:
        """Start a driver in place of one that is down, unless a stop was requested. The result
        includes the crash, if it counts."""
        layout = self._stream.layout
        jobs, asked = launcher.probe(self._stream, datetime.now(UTC)), stop_asked(layout)
        # After a failure, a later stop request shows as another condition than ``failed``.
        rests = found != "failed" and stop_holds(jobs, asked, last_failure(layout))
        # Such as one that `headgate down` has ended with its Airflow.
        was_stopped = how_ended(jobs, asked, last_failure(layout)) == "stopped"
        if found not in ("absent", "failed") and not rests and not was_stopped:
            self.log.warning("%s: its driver is %s", self.name, found)
            if epoch_of(jobs) != watch.counted:
                lines = self._last_lines(launcher)
                watch = self._counted(watch, jobs, lines, last_failure(layout))
        if found in ("dead", "stuck"):
            # It is fenced anyway; killing it frees its memory.
            with suppress(HeadgateError):
                launcher.kill(self._stream)
        if rests:
            self.log.info("%s is not started: it was asked to stop", self.name)
            return watch
        try:
            self.log.info("starting %s", self.name)
            started = launcher.launch(self._stream, variables=self._variables())
            self.log.info("%s runs as %s", self.name, started)
        except (HeadgateError, OSError) as error:
            failure = _record(error, self._stream.place)
            if failure.code == exit_codes.LEASE_HELD:
                self.log.info("%s was started by another process", self.name)
                return watch
            jobs = launcher.probe(self._stream, datetime.now(UTC))
            if isinstance(error, NoConnectionError) or (not jobs and last_failure(layout) is None):
                # There was no driver that could have recorded it, or it never had a lease. So only
                # this record shows later that a person is needed, and whether a stop was requested
                # since (``stop_holds``).
                with suppress(OSError):
                    record_failure(layout, failure)
            if not any(job.is_alive for job in jobs):
                self._repeat_stop(asked)
            if failure.code in NEEDS_A_PERSON:
                self._report(watch.token, last_failure(layout) or failure)
            return self._counted(watch, jobs, [str(error)], failure)
        self._repeat_stop(asked)
        return watch

    def _last_lines(self, launcher: Launcher) -> Sequence[str]:
        try:
            return launcher.logs(self._stream, _LOG_LINES)
        except (HeadgateError, OSError) as error:
            return [f"its log cannot be read: {error}"]

    def _repeat_stop(self, before: StopRequest | None) -> None:
        """Repeat a stop request that was made during the start: a driver ignores requests from
        before it had its lease. ``before`` is the last request before the start was decided."""
        asked = stop_asked(self._stream.layout)
        if asked is not None and asked.lasts and asked != before:
            self.log.info("%s was asked to stop while it started", self.name)
            request_stop(self._stream.layout)

    def _report(self, token: str, failure: Failure) -> NoReturn:
        """Fail with the reason and the remedy. The next run waits until the stream is started.
        Raises AirflowFailException: another attempt would fail in the same way."""
        give_up(self._stream.layout, token, reported=failure.at)
        message = f"{self.name} failed with exit code {failure.code}: {failure.reason}"
        raise AirflowFailException(
            rendered(f"{message}\n{failure.remedy}\n{START_AGAIN % self.name}")
        )

    def _counted(
        self, watch: Watch, jobs: Sequence[JobState], log: Sequence[str], failure: Failure | None
    ) -> Watch:
        """Add the crash of the driver that ran ``jobs``, or the failure of its machine, once: a
        driver that ends while it starts is seen by the start, and later by the trigger. Raises
        AirflowFailException if the budget of crashes is spent."""
        now, text = datetime.now(UTC), "\n".join(log)
        after = watch.after(failure, jobs, self.budget, now)
        if after.crashes == watch.crashes:
            self.log.warning("it is started again until the machine lets it run:\n%s", text)
            return after
        if self.budget.is_spent(after.crashes, now):
            raise AirflowFailException(
                f"{self.name} went down {plural(len(after.crashes), 'time')} within "
                f"{format_duration(self.budget.within)}; its last output:\n{text}"
            )
        self.log.warning("its output:\n%s", text)
        return after

    def _watch(self, watch: Watch, reported: datetime | None) -> NoReturn:
        """Take up the claim and defer. Raises TaskDeferred."""
        now = datetime.now(UTC)
        try:
            take_up(self._stream.layout, watch.token)
        except OSError as error:
            self.log.warning("%s: its documents cannot be written: %s", self.name, error)
        self.defer(
            trigger=StreamTrigger(
                file=self.file,
                name=self.name,
                root=self.root,
                launcher=self.launcher,
                token=watch.token,
                until=watch.until.isoformat(),
                wait=self.budget.pause((*watch.crashes, *watch.of_machine), now).total_seconds(),
                interval=self.interval.total_seconds(),
                stuck_after=self.stuck_after.total_seconds(),
                reported=None if reported is None else reported.isoformat(),
            ),
            method_name="resume",
            kwargs=watch.kept(),
        )


def _record(error: HeadgateError | OSError, place: Place) -> Failure:
    """The record of a start that failed."""
    code, reason, remedy = exit_codes.MACHINE, str(error), shell_command("doctor")
    if isinstance(error, HeadgateError):
        code, reason, remedy = error.exit_code, error.message, error.remedy
    reason, typed = rendered(reason, place), rendered(remedy, place)
    return Failure(code, reason, typed, datetime.now(UTC), commands_in(remedy, place))
