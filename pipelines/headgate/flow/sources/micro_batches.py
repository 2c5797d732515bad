"""Sources that commit to bronze batch by batch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headgate.declaration.model import Source
from headgate.lake.control.driver_reports import Backlog, Outage
from headgate.lake.control.driver_requests import SkipRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.flow.sources.records import Records
    from headgate.lake.tables.state import State
    from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class BatchEnd:
    """The end of a batch. ``offsets`` is where the source continues. ``partitions`` are those that
    the watermark waits for. ``topics`` and the new ``gaps`` are as in ``State``. ``arrived`` is
    when the oldest record of the batch arrived, as far as the source knows."""

    offsets: Mapping[str, int]
    partitions: Collection[int] = (0,)
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    arrived: datetime | None = None


class BronzeWriter(Protocol):
    """The part of a bronze stage that its source uses."""

    @property
    def table(self) -> Table: ...

    @property
    def offsets(self) -> Mapping[str, int]:
        """Where the source continues, as of bronze's newest commit."""

    def ingest(
        self,
        records: Records,
        reached: BatchEnd,
        now: datetime,
        verify: Callable[[], None] = ...,
    ) -> State:
        """Commit the records of a source range as the next batch.

        A range without records is still a batch, which advances the offsets. ``verify`` is called
        after the records were read, and raises if they have changed meanwhile. Raises
        CommitRefusedError or FencedError.
        """


@dataclass(frozen=True)
class SourceContext:
    """What a driver gives a source. ``pipeline`` is a name, ``declaration`` a file. ``tables`` are
    those that the source keeps (``Connector.tables``), fenced for this driver, by their kinds'
    names. While the source waits, it calls ``check`` repeatedly, which raises if the driver must
    end. ``clock`` is the wall clock, ``monotonic`` is in seconds. ``accept_gap`` allows the source
    to continue after lost records. ``is_shared``, for a load: whether its batches must be short,
    because the stream has input."""

    spark: SparkSession
    pipeline: str
    declaration: Path
    source: Source
    bronze: BronzeWriter
    tables: Mapping[str, Table]
    clock: Callable[[], datetime]
    cores: int = 2
    accept_gap: bool = False
    monotonic: Callable[[], float] = time.monotonic
    check: Callable[[], None] = lambda: None
    is_shared: Callable[[], bool] = lambda: False


class MicroBatchSource(ABC):
    """A log that is read batch by batch. A new object continues where bronze's last commit ended.

    A method that needs the input raises SourceUnreachableError if this does not answer now, such as
    brokers that are down. The driver calls it again later, so it must have changed nothing, and
    must not wait for the answer itself.

    The stream's thread calls ``ingest``. The supervising thread calls all other methods, and polls
    every ``every`` seconds.
    """

    every: float

    @abstractmethod
    def poll(self, *, final: bool) -> None:
        """Look for new input. ``final``: the run ends with the present input, so wait until all of
        it can be read."""

    @abstractmethod
    def pending(self) -> int:
        """The number of batches that wait. It may be an estimate, but is 0 only if none waits."""

    @abstractmethod
    def ingest(self) -> bool:
        """Commit the next batch to the first table of the job, if this source writes it. Returns
        False if there was no input."""

    @abstractmethod
    def backlog(self) -> Backlog:
        """The input that was found and is not ingested."""

    @abstractmethod
    def has_ingested_all(self) -> bool:
        """Whether everything of the final poll was ingested."""

    @property
    def outage(self) -> Outage | None:
        """Why the source does not answer; None if it does. Only the driver knows this."""
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

    def batch_took(self, took: timedelta) -> None:
        """Called with the duration of the last batch, including gold. Sources whose batch size
        depends on the declaration alone ignore it."""
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
