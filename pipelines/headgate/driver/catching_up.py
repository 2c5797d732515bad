"""Brings the tables and publications of a job up to their upstream tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.driver.publishing import Publications
from headgate.driver.runtime import PipelineRuntime


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
