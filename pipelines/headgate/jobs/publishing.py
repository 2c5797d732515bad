"""The publications of a job. They follow their tables; the tables do not wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from headgate.commands import pipeline_command
from headgate.declaration.kinds import QUARANTINE, kind_of
from headgate.declaration.sinks import sink_of
from headgate.errors import HeadgateError
from headgate.publish.stage import PublishStage

TRY_AGAIN = 60.0  # seconds after a sink refused rows or did not answer


class NotPublishedError(HeadgateError):
    """A sink does not take rows. The tables are complete; the rows are sent later."""

    exit_code: ClassVar[int] = 3


class Publications:
    """``monotonic`` is a clock in seconds. ``why_paused`` says why publications of gold and late
    rows pause (the circuit breaker); those of quarantined records go on."""

    def __init__(
        self,
        stages: Sequence[PublishStage],
        monotonic: Callable[[], float],
        why_paused: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._stages = stages
        self._monotonic = monotonic
        self._why_paused = why_paused
        self._paused: str | None = None
        self._failed: dict[str, tuple[float, str]] = {}

    @property
    def trouble(self) -> str | None:
        """A message about the publications that failed or pause; None if none does."""
        paused = [f"publications pause: {self._paused}"] if self._paused else []
        return "; ".join([*paused, *(failure for _, failure in self._failed.values())]) or None

    def catch_up(self, now: datetime, *, at_once: bool = False) -> None:
        """Publish new rows. If a sink does not take them, the tables continue and the publication
        is tried again after ``TRY_AGAIN``; with ``at_once`` it is tried now in any case."""
        follows = [stage for stage in self._stages if kind_of(stage.source.name) != QUARANTINE]
        self._paused = self._why_paused() if follows else None
        for stage in self._stages:
            if self._paused and stage in follows:
                continue
            name = stage.publication.name
            failed_at, _ = self._failed.get(name, (-TRY_AGAIN, ""))
            if not at_once and self._monotonic() - failed_at < TRY_AGAIN:
                continue
            try:
                stage.catch_up(now)
            except Exception as error:
                failure = stage.failure(error)
                if failure is None:
                    raise
                self._failed[name] = self._monotonic(), f"publish {name}: {failure}"
            else:
                self._failed.pop(name, None)

    def require_done(self, now: datetime) -> None:
        """Try a last time. Raises NotPublishedError if something cannot be published."""
        self.catch_up(now, at_once=True)
        if self._paused is not None:
            raise NotPublishedError(
                f"publications pause: {self._paused}; the tables are complete",
                remedy=f"see why: {pipeline_command('quarantine list')}; publications continue "
                "once newer batches are good, or by another circuit_breaker in the declaration",
            )
        if self.trouble is not None:
            failed = (s for s in self._stages if s.publication.name in self._failed)
            sinks = [sink_of(stage.publication) for stage in failed]
            accepts = " and ".join(dict.fromkeys(sink.accepts for sink in sinks))
            hints = " and ".join(dict.fromkeys(sink.check_hint for sink in sinks))
            again = pipeline_command("run", "--once")
            raise NotPublishedError(
                f"{self.trouble}; the tables are complete, and what is missing is sent as soon as "
                f"{accepts}",
                remedy=f"{hints}, then: {again}",
            )
