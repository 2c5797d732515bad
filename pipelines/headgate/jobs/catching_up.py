"""Brings the tables and publications of a job up to their upstream tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.jobs.publishing import Publications
from headgate.jobs.runtime import PipelineRuntime


class CatchUp:
    """The caller must hold the batch lock."""

    def __init__(
        self,
        runtime: PipelineRuntime,
        publications: Publications,
        clock: Callable[[], datetime],
    ) -> None:
        self._runtime, self._publications, self._clock = runtime, publications, clock
        self._is_level = False

    @property
    def trouble(self) -> str | None:
        """A message about the publications that failed; None if none did."""
        return self._publications.trouble

    @property
    def stuck(self) -> dict[str, dict[str, str]]:
        """The publications that failed, by name, with ``why`` and ``since`` in plain values."""
        found = self._publications.stuck.items()
        return {name: {"why": e.why, "since": e.since.isoformat()} for name, e in found}

    def run(self, *, one_step: bool = False) -> None:
        """Catch up without new data, carry out operations, publish. With ``one_step`` (see
        ``PipelineRuntime.catch_up``), the rest follows between batches."""
        self._is_level = self._runtime.catch_up(self._clock(), one_step=one_step)
        self._publications.catch_up(self._clock())

    def run_rest(self) -> None:
        """Continue the rebuilds and publications that an earlier step did not finish."""
        if self._is_level:
            self._publications.catch_up(self._clock())
        else:
            self.run(one_step=True)

    def require_published(self, is_stopped: Callable[[], bool]) -> bool:
        """Publish the rest, and wait until all is published. Returns False if the run is stopped
        first. Raises NotPublishedError if something cannot be published."""
        return self._publications.require_done(self._clock(), is_stopped)

    def close(self) -> None:
        """End the connections of sinks."""
        self._publications.close()
