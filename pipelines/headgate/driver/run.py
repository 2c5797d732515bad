"""The objects that all parts of one run of a job share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.driver.catching_up import CatchUp
from headgate.driver.progress import Progress
from headgate.driver.publishing import Publications
from headgate.driver.run_control import RunControl
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.scratch import job_name
from headgate.driver.task import Task
from headgate.lake.storage.layout import Layout


@dataclass(frozen=True)
class Run:
    """A job whose tables are open and fenced under ``epoch``. ``say`` is called with the name of
    each stage that begins, ``report`` when a stage is done, ``tell`` with a line for the log."""

    task: Task
    layout: Layout
    epoch: int
    spark: SparkSession
    runtime: PipelineRuntime
    catch_up: CatchUp
    publications: Publications
    progress: Progress
    control: RunControl
    report: Callable[[Progress], None]
    say: Callable[[str], None]
    tell: Callable[[str], None]
    clock: Callable[[], datetime]

    @property
    def job(self) -> str:
        return job_name(self.task.layers)

    @property
    def writes_bronze(self) -> bool:
        return "bronze" in self.task.layers
