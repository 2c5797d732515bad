"""The objects that all parts of one run of a job share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.driver.progress import JobProgress
from headgate.driver.publishing import Publications
from headgate.driver.run_control import RunControl
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.task import Task
from headgate.lake.storage.layout import Layout


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


@dataclass(frozen=True)
class DriverRun:
    """A job whose tables are open and fenced under ``epoch``. ``say`` is called with the name of
    each stage that begins, ``report`` when a stage is done, ``tell`` with a line for the log."""

    task: Task
    layout: Layout
    epoch: int
    spark: SparkSession
    runtime: PipelineRuntime
    catch_up: CatchUp
    publications: Publications
    progress: JobProgress
    control: RunControl
    report: Callable[[JobProgress], None]
    say: Callable[[str], None]
    tell: Callable[[str], None]
    clock: Callable[[], datetime]

    @property
    def job(self) -> str:
        return self.task.job

    @property
    def writes_bronze(self) -> bool:
        return "bronze" in self.task.layers
