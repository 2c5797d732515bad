"""Sources that are read range by range. One loop reads and commits for all of them
(``driver.source_loop``)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headgate.declaration.model import Source
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.payloads.bronze import BronzePayload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.flow.sources.records import Records
    from headgate.lake.tables.table import Table

Range = TypeVar("Range")


@dataclass(frozen=True)
class BatchEnd:
    """The end of a batch. ``offsets`` is where the source continues. ``partitions`` are those that
    the watermark waits for. ``topics`` and the new ``gaps`` are as in ``BronzePayload``.
    ``arrived`` is when the oldest record of the batch arrived, as far as the source knows."""

    offsets: Mapping[str, int]
    partitions: Collection[int] = (0,)
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    arrived: datetime | None = None


@dataclass(frozen=True)
class SourceBatch:
    """The records of a range. ``verify`` is called after they were read and before they are
    committed. It raises if they have changed meanwhile."""

    records: Records
    end: BatchEnd
    verify: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class SourceContext:
    """What a driver gives a source. ``pipeline`` is a name, ``declaration`` a file. ``tables`` are
    those that the source keeps (``Connector.tables``), fenced for this driver under ``epoch``, by
    their kinds' names. While the source waits, it calls ``check`` repeatedly, which raises if the
    driver must end. ``clock`` is the wall clock, ``monotonic`` is in seconds. ``accept_gap`` allows
    the source to continue after lost records. ``is_shared``, for a load: whether its batches must
    be short, because the stream has input."""

    spark: SparkSession
    pipeline: str
    declaration: Path
    source: Source
    tables: Mapping[str, Table]
    epoch: int
    clock: Callable[[], datetime]
    cores: int = 2
    accept_gap: bool = False
    monotonic: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    is_shared: Callable[[], bool] = lambda: False


class MicroBatchSource(ABC, Generic[Range]):
    """A log that is read range by range. ``at`` is the position from which the source continues:
    the payload of bronze's newest commit, for a load with the offsets of the load. The source
    commits nothing and keeps no position.

    A method that needs the input raises SourceUnreachableError if this does not answer now, such as
    brokers that are down. It is called again later, so it must have changed nothing, and must not
    wait for the answer itself.

    One thread plans and reads ranges. The supervising thread calls all other methods, and polls
    every ``every`` seconds. ``start`` is a batch end that must be committed without records before
    anything is read, such as the declared start; None if reading continues at the position.
    """

    every: float
    start: BatchEnd | None = None

    @abstractmethod
    def poll(self, at: BronzePayload, *, final: bool) -> None:
        """Look for new input. ``final``: the run ends with the present input, so wait until all of
        it can be read."""

    @abstractmethod
    def pending(self, at: BronzePayload) -> int:
        """The number of batches that wait. It may be an estimate, but is 0 only if none waits."""

    @abstractmethod
    def backlog(self, at: BronzePayload) -> Backlog:
        """The input that was found and is not ingested."""

    @abstractmethod
    def next_range(self, at: BronzePayload) -> Range | None:
        """The range of the next batch, within the limits of the source; None without input."""

    @abstractmethod
    def read(self, planned: Range, now: datetime) -> SourceBatch:
        """The records of a range. They may be read later, block by block."""

    def failed(self, planned: Range, error: Exception, *, is_last: bool) -> Range | None:
        """Called after a range could not be read. ``is_last``: ``error`` ends the driver, unless
        the source knows better. Returns a range to read instead, such as the same one without a
        damaged file; None to try the same range again. Raises what the failure means, if this is
        known."""
        return None

    @property
    def remark(self) -> str | None:
        """A message about a source that answers, but may not be what was meant."""
        return None

    @property
    def set_aside(self) -> int:
        """The number of files that could not be read, and that wait for a person."""
        return 0

    def skip(self, wanted: SkipRequest) -> None:
        """Skip files that are set aside. Others are left as they are."""
        return

    def batch_took(self, planned: Range, took: timedelta) -> None:
        """Called with the last range and the duration of its batch, including gold. Sources whose
        batch size depends on the declaration alone ignore it."""
        return

    def close(self) -> None:
        """Release resources."""
        return


def next_limit(
    limit: int, taken: int, took: timedelta, *, target: timedelta, lowest: int, highest: int
) -> int:
    """The next batch's limit, after a batch of ``taken`` records with the duration ``took``.

    After a slow batch: the records that would have fitted, but at least half. After a full batch
    well below the target: half as much again. Otherwise unchanged, so that sizes do not oscillate.
    """
    if took > target:
        fitting = int(taken * (target / took))
        return max(lowest, min(limit, max(fitting, limit // 2)))
    if took < target / 2 and taken >= limit:
        return min(highest, limit + limit // 2 + 1)
    return limit
