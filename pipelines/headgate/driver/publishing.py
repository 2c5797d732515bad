"""The publications of a job. They follow their tables; the tables do not wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from headgate import exit_codes
from headgate.commands import pipeline_command, rendered
from headgate.declaration.contracts.sink import sink_of
from headgate.errors import HeadgateError, joined_messages
from headgate.flow.publish.publication import PublicationStage

TRY_AGAIN = 60.0  # seconds after a sink refused rows or did not answer
_PAUSING = ("gold", "late")
_ASK_AGAIN = 0.05  # seconds between checks whether background work is done


class NotPublishedError(HeadgateError, code=exit_codes.SOURCE):
    """A sink does not take rows. The tables are complete; the rows are sent later."""


@dataclass(frozen=True)
class StuckPublication:
    """A publication whose sink does not take rows. ``since`` is the time of the first failure,
    ``tried`` that of the last one, in seconds of the ``monotonic`` clock."""

    why: str
    since: datetime
    tried: float


class Publications:
    """``monotonic`` is a clock in seconds. ``why_paused`` returns why the circuit breaker pauses
    the publications of gold and late rows, None if it does not; the others continue."""

    def __init__(
        self,
        stages: Sequence[PublicationStage],
        monotonic: Callable[[], float],
        why_paused: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._stages = stages
        self._monotonic = monotonic
        self._why_paused = why_paused
        self._paused: str | None = None
        self._stuck: dict[str, StuckPublication] = {}
        self._unfinished: set[str] = set()

    @property
    def trouble(self) -> str | None:
        """A message about the publications that failed or pause; None if there are none."""
        paused = [f"publications pause: {self._paused}"] if self._paused else []
        failed = (f"publish {name}: {each.why}" for name, each in self._stuck.items())
        return joined_messages((*paused, *failed))

    @property
    def stuck(self) -> dict[str, dict[str, str]]:
        """The publications that failed, by name, with ``why`` and ``since`` in plain values."""
        found = self._stuck.items()
        return {name: {"why": e.why, "since": e.since.isoformat()} for name, e in found}

    def catch_up(self, now: datetime, *, at_once: bool = False) -> None:
        """Publish new rows. If a sink does not take them, the tables continue and the publication
        is tried again after ``TRY_AGAIN``; with ``at_once`` it is tried now in any case."""
        follows = [s for s in self._stages if s.publication.layer in _PAUSING]
        self._paused = self._why_paused() if follows else None
        for stage in self._stages:
            if self._paused and stage in follows:
                self._unfinished.discard(stage.publication.name)
            else:
                self._catch_up(stage, now, at_once=at_once)

    def _go_on(self, now: datetime) -> None:
        """Continue the publications that sinks work on in the background. Whether they pause is not
        checked again: that reads tables, and this is called often."""
        for stage in self._stages:
            if stage.publication.name in self._unfinished:
                self._catch_up(stage, now, at_once=False)

    def _catch_up(self, stage: PublicationStage, now: datetime, *, at_once: bool) -> None:
        name = stage.publication.name
        before, goes_on = self._stuck.get(name), name in self._unfinished or at_once
        if before and not goes_on and self._monotonic() - before.tried < TRY_AGAIN:
            return
        try:
            is_done = stage.catch_up(now)
        except Exception as error:
            self._unfinished.discard(name)
            failure = stage.failure(error)
            if failure is None:
                raise
            since = before.since if before else now
            # Commands are rendered here: readers of the status document do not know the place.
            self._stuck[name] = StuckPublication(rendered(failure), since, self._monotonic())
            return
        if is_done:
            self._unfinished.discard(name)
            self._stuck.pop(name, None)
        else:
            # It stays stuck until all is sent: a try that has only begun may still fail.
            self._unfinished.add(name)

    def require_done(self, now: datetime, is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Try a last time, and wait for the work of sinks in the background. Returns whether all is
        published; it is not if the run is stopped meanwhile. Raises NotPublishedError if something
        cannot be published."""
        self.catch_up(now, at_once=True)
        while self._unfinished:
            if is_stopped():
                return False
            time.sleep(_ASK_AGAIN)
            self._go_on(now)
        if self._paused is not None:
            raise NotPublishedError(
                f"publications pause: {self._paused}; the tables are complete",
                remedy=f"see why: {pipeline_command('quarantine list')}; publications continue "
                "once newer batches are good, or if circuit_breaker is changed in the declaration",
            )
        if self.trouble is not None:
            failed = (s for s in self._stages if s.publication.name in self._stuck)
            sinks = [sink_of(stage.publication) for stage in failed]
            accepts = " and ".join(dict.fromkeys(sink.accepts for sink in sinks))
            hints = " and ".join(dict.fromkeys(sink.check_hint for sink in sinks))
            again = pipeline_command("run", "--once")
            raise NotPublishedError(
                f"{self.trouble}; the tables are complete, and what is missing is sent as soon as "
                f"{accepts}",
                remedy=f"{hints}, then: {again}",
            )
        return True

    def close(self) -> None:
        """End the connections of sinks, and their work in the background."""
        if self._stages:  # in parallel: each waits for its work in progress
            with ThreadPoolExecutor(len(self._stages)) as pool:
                list(pool.map(lambda stage: stage.close(), self._stages))
