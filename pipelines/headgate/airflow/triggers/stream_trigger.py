"""Watches a stream in the triggerer, so that no worker is held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.triggers.base import TriggerEvent

from headgate.airflow.error_text import error_text
from headgate.airflow.task_state import is_to_stop, name_of, state_of
from headgate.airflow.triggers.plain_trigger import PlainTrigger, event
from headgate.commands import pipeline_command, rendered
from headgate.errors import HeadgateError
from headgate.lake.control.claim import claimed
from headgate.lake.control.driver_reports import Failure, last_failure
from headgate.lake.control.driver_requests import request_stop, stop_asked
from headgate.supervision.job_state import JobState
from headgate.supervision.launcher import Stream, launcher_of
from headgate.supervision.progress_text import progress_line
from headgate.supervision.supervisor import Observation, observe, supervisor_step

START_AGAIN = f"Start it again: the DAG %s__control, or: {pipeline_command('start')}"
_QUIET = timedelta(minutes=1)


@dataclass(eq=False, repr=False, kw_only=True)
class StreamTrigger(PlainTrigger):
    """Fires once: ``{"event": "down", "condition", "fingerprint"}`` if a driver has to be started
    (as in ``Observation``), ``{"event": "failed"}`` if a person has to act first, ``{"event":
    "rotated"}`` at ``until``, when the next run adopts the stream. The failure at the time
    ``reported`` is not reported again.

    The first observation is after ``wait`` seconds, so that crashes do not follow each other at
    once. All times are in seconds, ``until`` in ISO 8601.
    """

    file: str
    name: str
    root: str
    launcher: str
    token: str
    until: str
    wait: float
    interval: float
    stuck_after: float
    reported: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._stream = Stream(Path(self.file), self.name, self.root)
        self._launcher = launcher_of(self.launcher)
        self._until = datetime.fromisoformat(self.until)
        self._reported = datetime.fromisoformat(self.reported) if self.reported else None
        self._logged = datetime.min.replace(tzinfo=UTC)
        self._news: object = None

    async def run(self) -> AsyncIterator[TriggerEvent]:
        warming = asyncio.create_task(self._warm_up())
        try:
            async for fired in self._watch():
                yield fired
        finally:
            warming.cancel()

    async def _watch(self) -> AsyncIterator[TriggerEvent]:
        await asyncio.sleep(self.wait)
        seen: Observation | None = None
        while True:
            now = datetime.now(UTC)
            try:
                jobs, found, failure = await asyncio.to_thread(self._observe, now, seen)
            except (HeadgateError, OSError) as error:
                # Such as a full disk or a damaged document: try again.
                reason = error_text(error, self._stream.place)
                self.log.warning("cannot read the state of %s: %s", self._stream.name, reason)
            else:
                if (next_ := supervisor_step(found.condition, failure, self._reported)) != "watch":
                    await self.settled()
                    yield event(_down(found) if next_ == "start" else {"event": "failed"})
                    return
                self._log_news(found, jobs, now, failure)
                seen = found
            if now >= self._until:
                await self.settled()
                yield event({"event": "rotated"})
                return
            await asyncio.sleep(self.interval)

    async def on_kill(self) -> None:
        """Called when the task is marked, cleared or deleted. A cleared task adopts the stream
        again. If the next run has claimed the stream already, that run has decided."""
        name = self._stream.name
        try:
            self.log.info(await asyncio.to_thread(self._end))
        except Exception as error:
            self.log.warning("%s continues: whether to stop it is not known: %s", name, error)

    def _end(self) -> str:
        """Stop the stream if a person has ended this task. Returns the result as text."""
        name, layout, state = self._stream.name, self._stream.layout, self._state()
        held = claimed(layout)
        if held is None or held.token != self.token:
            return f"{name} is supervised by the run {held.by[1] if held else None} now"
        if not is_to_stop(held, state, stop_asked(layout)):
            return f"{name} continues: a task will supervise it again"
        request_stop(layout, self.token)
        return f"{name} is asked to stop after its batch: this task is {state}"

    def _state(self) -> str:
        """The state of this task in Airflow; it was set before this attempt was ended."""
        task = self.task_instance
        assert task is not None
        return state_of(*name_of(task))

    async def _warm_up(self) -> None:
        """Ask Airflow once. The first answer takes a triggerer about five seconds, because it
        creates its own API for it: in ``on_kill``, that is too late."""
        with suppress(Exception):
            await asyncio.to_thread(self._state)

    def _observe(
        self, now: datetime, before: Observation | None
    ) -> tuple[tuple[JobState, ...], Observation, Failure | None]:
        jobs = self._launcher.probe(self._stream, now)
        layout = self._stream.layout
        asked, failure = stop_asked(layout), last_failure(layout)
        after = timedelta(seconds=self.stuck_after)
        found = observe(jobs, now, before, stop_asked=asked, stuck_after=after, failure=failure)
        return jobs, found, failure

    def _start_again(self) -> str:
        return rendered(START_AGAIN % self._stream.name, self._stream.place)

    def _log_news(
        self, seen: Observation, jobs: tuple[JobState, ...], now: datetime, failure: Failure | None
    ) -> None:
        """Log each new batch, each source that fails, and each change of condition, else one line a
        minute."""
        sources = [(name, each) for job in jobs for name, each in job.sources.items()]
        news = seen.condition, [(each.n, each.failure is None) for _, each in sources]
        if news == self._news and now - self._logged < _QUIET:
            return
        self._news, self._logged = news, now
        name, again = self._stream.name, self._start_again()
        if seen.condition == "failed" and failure is not None:
            reason = f"{failure.reason}\n{failure.remedy}"
            self.log.warning("%s waits for a person: %s\n%s", name, reason, again)
        if seen.condition == "waiting":
            for job in jobs:
                if job.is_waiting:
                    self.log.warning("%s: %s", name, job.trouble)
        for source, each in sources if seen.condition in ("running", "waiting") else ():
            if each.failure is not None:
                said = f"{each.failure.reason}\n{each.failure.remedy}"
                self.log.warning("%s: source %s waits for a person: %s", name, source, said)
        if seen.condition == "resting":
            self.log.info("%s is stopped on request. %s", name, again)
        for job in jobs:
            if job.is_alive and job.is_open and not job.is_waiting:
                self.log.info(progress_line(job, now))


def _down(seen: Observation) -> dict[str, Any]:
    return {"event": "down", "condition": seen.condition, "fingerprint": seen.fingerprint}
