"""Keeps one stream running while its DAG is on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import GONE, OVER, name_of, state_of
from headgate.airflow.triggers.stream_trigger import LOG_LINES, START_AGAIN, StreamTrigger
from headgate.commands import rendered
from headgate.errors import HeadgateError
from headgate.storage.failure import Failure, last_failure
from headgate.storage.stopping import StopRequest, request_stop, stop_asked
from headgate.supervision.claim import Claim, claim, claimed, give_up, is_orphaned
from headgate.supervision.keeping import (
    NEEDS_A_PERSON,
    Condition,
    RestartPolicy,
    condition,
    step,
    stop_holds,
)
from headgate.supervision.launcher import Launcher

if TYPE_CHECKING:
    from airflow.sdk import Context

_LEASE_HELD = 6  # the exit code of a driver that finds another one running


@dataclass(frozen=True)
class _Watch:
    """State that is passed from one start to the next: the token of the claim, the end of this run,
    and the times of crashes."""

    token: str
    until: datetime
    crashes: tuple[datetime, ...] = ()


class StreamOperator(StreamTask):
    """Adopts the stream's driver, or starts one, and watches it from the triggerer.

    The lease, not Airflow, ensures that exactly one driver runs. A driver that dies, ends without a
    request or makes no progress for ``stuck_after`` is replaced, each time after a longer pause.
    ``budget`` limits these restarts; beyond it the task fails with the end of the driver's log. A
    driver that ends for a reason that only a person can remove is not replaced: the task fails at
    once, with the reason and the command to type, and the next run waits until the stream is
    started. The task ends after ``rotate_after``; the next run adopts the driver.
    """

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
        if before is not None and is_orphaned(before, by, stop_asked(layout)):
            state = state_of(*before.by)
            # A deleted run may also be a run of another Airflow database.
            if state in OVER and state != GONE:
                # The task was ended by hand while no triggerer ran.
                self.log.info("the run %s is %s: its stream is stopped", before.by[1], state)
                request_stop(layout)
        reported = None if before is None else before.reported
        watch = _Watch(uuid.uuid4().hex, now + self.rotate_after)
        claim(layout, Claim(watch.token, by, now, reported=reported))
        # Start here, not after a deferral: the task would resume within a second or two, which a
        # busy scheduler takes for a failure (PlainTrigger.SETTLES).
        launcher, failure = self._launcher, last_failure(layout)
        found = condition(launcher.probe(self._stream, now), stop_asked(layout), failure)
        # A failure that no supervisor has reported does not prevent a start.
        if step(found, failure, reported) != "watch":
            watch = self._start(launcher, watch, found, launcher.logs(self._stream, LOG_LINES))
        self._watch(watch, reported)

    def resume(
        self, context: Context, event: dict[str, Any], token: str, until: str, crashes: list[str]
    ) -> None:
        """Called on a worker with the event of the trigger."""
        times = tuple(map(datetime.fromisoformat, crashes))
        watch = _Watch(token, datetime.fromisoformat(until), times)
        if event["event"] == "rotated":
            give_up(self._stream.layout, token)
            self.log.info("%s continues; the next run supervises it", self.name)
            return
        if event["event"] == "failed" and (failure := last_failure(self._stream.layout)):
            self._report(token, failure)
        launcher = self._launcher
        now_there = [job.epoch for job in launcher.probe(self._stream, datetime.now(UTC))]
        if event["event"] == "down" and now_there == event["epochs"]:
            watch = self._start(launcher, watch, event["condition"], event["log"])
        else:
            self.log.info("%s was started by another process meanwhile", self.name)
        held = claimed(self._stream.layout)
        self._watch(watch, None if held is None else held.reported)

    def _start(
        self, launcher: Launcher, watch: _Watch, found: Condition, log: Sequence[str]
    ) -> _Watch:
        """Start a driver in place of one that is down, unless a stop was requested. The result
        includes the crash, if it counts."""
        layout = self._stream.layout
        jobs, asked = launcher.probe(self._stream, datetime.now(UTC)), stop_asked(layout)
        # After a failure, a later stop request shows as another condition than ``failed``.
        rests = found != "failed" and stop_holds(jobs, asked, last_failure(layout))
        if found not in ("absent", "failed") and not rests:
            self.log.warning("%s: its driver is %s", self.name, found)
            watch = self._counted(watch, log)
        if found in ("dead", "stuck"):
            # It is fenced anyway; killing it frees its memory.
            with suppress(HeadgateError):
                launcher.kill(self._stream)
        if rests:
            self.log.info("%s is not started: it was asked to stop", self.name)
            return watch
        try:
            self.log.info("starting %s", self.name)
            self.log.info("%s runs as %s", self.name, launcher.launch(self._stream))
        except HeadgateError as error:
            if error.exit_code == _LEASE_HELD:
                self.log.info("%s was started by another process", self.name)
                return watch
            if not any(job.is_alive for job in launcher.probe(self._stream, datetime.now(UTC))):
                self._repeat_stop(asked)
            if error.exit_code in NEEDS_A_PERSON:
                now = datetime.now(UTC)
                refused = Failure(error.exit_code, error.message, error.remedy, now)
                self._report(watch.token, last_failure(layout) or refused)
            return self._counted(watch, [str(error)])
        self._repeat_stop(asked)
        return watch

    def _repeat_stop(self, before: StopRequest | None) -> None:
        """Repeat a stop request that was made during the start: a driver ignores requests from
        before it had its lease. ``before`` is the last request before the start was decided."""
        if stop_asked(self._stream.layout) != before:
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

    def _counted(self, watch: _Watch, log: Sequence[str]) -> _Watch:
        """Add a crash. Raises AirflowFailException if the budget is spent."""
        now = datetime.now(UTC)
        crashes = (*self.budget.recent(watch.crashes, now), now)
        text = "\n".join(log)
        if self.budget.is_spent(crashes, now):
            give_up(self._stream.layout, watch.token)
            raise AirflowFailException(
                f"{self.name} went down {len(crashes)} times within {self.budget.within}; its "
                f"last output:\n{text}"
            )
        self.log.warning("its output:\n%s", text)
        return replace(watch, crashes=crashes)

    def _watch(self, watch: _Watch, reported: datetime | None) -> None:
        now = datetime.now(UTC)
        self.defer(
            trigger=StreamTrigger(
                file=self.file,
                name=self.name,
                root=self.root,
                launcher=self.launcher,
                token=watch.token,
                until=watch.until.isoformat(),
                wait=self.budget.pause(watch.crashes, now).total_seconds(),
                interval=self.interval.total_seconds(),
                stuck_after=self.stuck_after.total_seconds(),
                reported=None if reported is None else reported.isoformat(),
            ),
            method_name="resume",
            kwargs={
                "token": watch.token,
                "until": watch.until.isoformat(),
                "crashes": [at.isoformat() for at in watch.crashes],
            },
        )
