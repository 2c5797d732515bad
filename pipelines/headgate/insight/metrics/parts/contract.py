"""The contract of a part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from headgate.declaration.model import Pipeline
from headgate.insight.metrics.samples import Samples
from headgate.insight.status.limits import Limits
from headgate.lake.storage.layout import Layout


@dataclass(frozen=True)
class WatchedPipeline:
    """The pipeline that is read, where its tables are, and the limits that it does not declare."""

    declared: Pipeline
    layout: Layout
    limits: Limits = field(default_factory=Limits)


class Reading(ABC):
    """Reads a part of a pipeline's samples. One thread uses it.

    ``name`` is its label in metrics. ``every`` is the least time between two readings in seconds.
    ``share`` is the part of one core that it may take: one that is slow is read less often. None if
    its work is in proportion to that of the stream.
    """

    name: ClassVar[str]
    every: ClassVar[float]
    share: ClassVar[float | None] = 0.0015

    @abstractmethod
    def read(self, samples: Samples, now: datetime) -> None:
        """Add the samples of this part. There may be none if the pipeline has never run.

        Raises HeadgateError, or the error of a file, if a table or a document is damaged.
        """
