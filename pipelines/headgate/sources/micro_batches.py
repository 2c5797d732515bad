"""What moves a pipeline: sources that commit to bronze batch by batch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headgate.declaration.model import Source
from headgate.storage.backlog import Backlog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.tables.state import State
    from headgate.tables.table import Table


@dataclass(frozen=True)
class BatchEnd:
    """Where a batch ends: ``offsets`` is where the source continues, ``partitions`` those that
    the watermark waits for, ``topics`` and new ``gaps`` what ``State`` says."""

    offsets: Mapping[str, int]
    partitions: Collection[int] = (0,)
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()


class BronzeWriter(Protocol):
    """The stage of a source's bronze table, as far as its source needs it."""

    @property
    def table(self) -> Table: ...

    def absorb(
        self,
        records: DataFrame,
        reached: BatchEnd,
        now: datetime,
        verify: Callable[[], None] = ...,
    ) -> State:
        """Commit the records of a source range as the next batch.

        ``records`` has the shape of ``tables.record_shape``; ``verify`` is called after they
        were read and raises if they changed meanwhile. Raises CommitRefusedError or FencedError.
        """

    def no_records(self) -> DataFrame:
        """A range without a record still is a batch: it moves the source offsets on."""


@dataclass(frozen=True)
class SourceContext:
    """What a driver gives a source. ``pipeline`` is a name, ``declaration`` a file. ``tables`` are
    those that the source keeps (``Connector.tables``), fenced for this driver, by their kinds'
    names. ``waits`` is told again and again what the source waits for, and raises where the driver
    is to end. ``clock`` is the wall clock, ``monotonic`` is in seconds. ``accept_gap`` says that
    what is gone may be passed over."""

    spark: SparkSession
    pipeline: str
    declaration: Path
    source: Source
    bronze: BronzeWriter
    tables: Mapping[str, Table]
    waits: Callable[[str], None]
    clock: Callable[[], datetime]
    cores: int = 2
    accept_gap: bool = False
    monotonic: Callable[[], float] = time.monotonic


class MicroBatchSource(ABC):
    """A log that is read batch by batch. A new one continues where bronze's last commit ended.

    ``absorb`` is called by the stream's thread, everything else by the supervising one, which
    polls every so many seconds (``every``).
    """

    every: float

    @abstractmethod
    def poll(self, *, final: bool) -> None:
        """Look for more; ``final``: what is there now is all that will be asked for, so wait until
        it can be read."""

    @abstractmethod
    def pending(self) -> int:
        """How many batches wait. It may be an estimate, but is 0 only where nothing waits."""

    @abstractmethod
    def absorb(self) -> bool:
        """Commit the next batch to the first table of the job, if it is this source's to do; False
        where there turned out to be nothing."""

    @abstractmethod
    def backlog(self) -> Backlog:
        """What was found and is not absorbed."""

    @abstractmethod
    def has_absorbed_all(self) -> bool:
        """Whether everything of the final poll was absorbed."""

    @property
    def trouble(self) -> str | None:
        """What keeps the source from answering, if anything, in words."""
        return None

    def batch_took(self, took: timedelta) -> None:
        """How long the last batch took, down to gold. Of no matter where the declaration alone
        bounds batches."""
        return

    def close(self) -> None:
        """Release what it holds."""
        return
