"""What a driver reports: how far it is behind, how this has changed, what does not answer, and why
the last start failed. The failure is a document of its own; the rest is in the status document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from headgate.declaration.quantities import plural, size_text, span
from headgate.lake.storage.documents import encoded, read_value, write_document
from headgate.lake.storage.layout import Layout

Unit = Literal["files", "records", "batches"]


@dataclass(frozen=True)
class PartitionBacklog:
    """``records`` is the number of unread records; the oldest of them has waited for ``seconds``,
    as far as this job has observed. ``clock`` is the partition's watermark (ISO 8601, UTC,
    microseconds; None if it has none yet). If the partition is ``idle``, the watermark of the
    source does not wait for it."""

    records: int
    seconds: float
    clock: str | None = None
    idle: bool = False


@dataclass(frozen=True)
class Backlog:
    """``count`` is the number of unread files, records or (below bronze) batches, ``size`` their
    bytes, None if it is not known. ``partitions`` are by name (topic/partition), empty if the
    source has none."""

    unit: Unit
    count: int = 0
    size: int | None = None
    partitions: Mapping[str, PartitionBacklog] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long the oldest unread record has waited."""
        return max((p.seconds for p in self.partitions.values()), default=0.0)

    @property
    def holding(self) -> str | None:
        """The partition that the watermark of the source waits for: the active partition with the
        smallest watermark, or one that has none yet."""
        waited_for = {name: p.clock or "" for name, p in self.partitions.items() if not p.idle}
        return min(waited_for, key=waited_for.__getitem__, default=None)

    @property
    def number(self) -> str:
        """The count with its unit, such as "1 file"."""
        return plural(
            self.count, {"files": "file", "records": "record", "batches": "batch"}[self.unit]
        )

    def __str__(self) -> str:
        if not self.count:
            return "none"
        size = "" if self.size is None else f" {size_text(self.size)}"
        age = f" {self.seconds:,.0f} s" if self.partitions else ""
        return f"{self.number}{size}{age}"


SAMPLE_EVERY = timedelta(seconds=5)
KEPT_SAMPLES = 20


@dataclass(frozen=True)
class LagSample:
    """At the time ``at``, ``backlog`` records were unread, and ``read`` records had been read since
    the tables were created."""

    at: datetime
    backlog: int
    read: int


def with_sample(samples: tuple[LagSample, ...], sample: LagSample) -> tuple[LagSample, ...]:
    """``samples`` with ``sample`` at the end, unless it is too soon after the last one. The oldest
    samples are dropped, and all with a later time: they come from a clock that was ahead."""
    earlier = tuple(each for each in samples if each.at <= sample.at)
    if earlier and sample.at - earlier[-1].at < SAMPLE_EVERY:
        return earlier
    return (*earlier, sample)[-KEPT_SAMPLES:]


@dataclass(frozen=True)
class Outage:
    """Something that a driver needs does not answer, and the driver tries again. ``what`` is a
    message about it. ``since`` is when the first attempt without an answer began, ``tried`` when
    the last one failed; ``attempts`` have failed in a row."""

    what: str
    since: datetime
    tried: datetime
    attempts: int = 1

    def lasts(self, now: datetime) -> timedelta:
        return max(now - self.since, timedelta())

    def said(self, now: datetime) -> str:
        """A message, such as "no answer from the brokers a:9092, for 2 min (5 attempts); the driver
        keeps trying"."""
        attempts = plural(self.attempts, "attempt")
        return f"{self.what}, for {span(self.lasts(now))} ({attempts}); the driver keeps trying"


def combined_outage(outages: Iterable[Outage | None]) -> Outage | None:
    """Several outages at the same time as one; None if there is none."""
    found = [outage for outage in outages if outage is not None]
    if not found:
        return None
    return Outage(
        "; ".join(dict.fromkeys(outage.what for outage in found)),
        since=min(outage.since for outage in found),
        tried=max(outage.tried for outage in found),
        attempts=max(outage.attempts for outage in found),
    )


@dataclass(frozen=True)
class SourceFailure:
    """A source cannot be read, or its silver and gold tables cannot continue, before a person acts.
    ``remedy`` is what to do, with commands as they can be typed; ``commands`` are the commands in
    it."""

    reason: str
    remedy: str
    since: datetime
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceReport:
    """What a driver knows of a source at a moment. ``backlog`` is None until the source has
    answered. ``remark`` is a message about a source that answers, but may not be what was meant.
    ``set_aside`` is the number of files that could not be read and wait for a person."""

    backlog: Backlog | None = None
    outage: Outage | None = None
    failure: SourceFailure | None = None
    remark: str | None = None
    set_aside: int = 0


@dataclass(frozen=True)
class SourceProgress:
    """A source in the status of a job. ``n`` and ``watermark`` are those of its bronze table,
    ``quarantined`` counts its invalid records, and ``samples`` are measurements of a backlog in
    records. The other fields are as in ``SourceReport``. The tables that read the source wait while
    it has an ``outage`` or a ``failure``; other tables do not."""

    n: int = 0
    watermark: datetime | None = None
    quarantined: int = 0
    backlog: Backlog | None = None
    outage: Outage | None = None
    failure: SourceFailure | None = None
    remark: str | None = None
    set_aside: int = 0
    samples: tuple[LagSample, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether the source answers, and no person has to act before it can be read."""
        return self.outage is None and self.failure is None


def about_source(name: str, message: str, sources: Collection[str]) -> str:
    """A message about a source. It names the source if the pipeline has several."""
    return message if len(sources) == 1 else f"source {name}: {message}"


FAILURE = Layout.document("failure")


@dataclass(frozen=True)
class Failure:
    """``code`` is the exit code (docs/operations.md), ``remedy`` what to do next, with commands as
    they can be typed; ``commands`` are the commands in it. ``at`` distinguishes failures."""

    code: int
    reason: str
    remedy: str
    at: datetime
    commands: tuple[str, ...] = ()


def record_failure(layout: Layout, failure: Failure) -> None:
    write_document(layout.storage, FAILURE, encoded(failure))


def last_failure(layout: Layout) -> Failure | None:
    """The failure of the last start; None if it has not failed."""
    return read_value(layout.storage, FAILURE, Failure)


def forget_failure(layout: Layout) -> None:
    """Remove the failure, because a new start tries again what failed before."""
    layout.storage.remove(FAILURE)
