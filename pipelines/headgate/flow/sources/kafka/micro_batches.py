"""Micro-batches over topics: from ranges of their partitions to bronze commits.

The range of a batch is decided when it begins, from bronze's position and the target duration of
batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka.backlog import Arrivals, kafka_backlog
from headgate.flow.sources.kafka.batches import KafkaBatches
from headgate.flow.sources.kafka.failures import TopicMissingError
from headgate.flow.sources.kafka.idling import Idling, waited_for
from headgate.flow.sources.kafka.losses import Loss, losses, lost_error, require_same
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import (
    Topic,
    TopicListing,
    decoded_offsets,
    encoded_offsets,
    enrolled,
    partitions,
)
from headgate.flow.sources.micro_batches import BatchEnd, SourceContext, next_limit
from headgate.flow.sources.records import PartedRecords
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State

UNKNOWN_SIZE = 4_000
"""The assumed size of a record in bytes until one was read."""


class KafkaMicroBatches(KafkaBatches):
    """Listing and reading run on different threads. ``_lock`` guards shared fields, and
    ``_listing_lock`` keeps listings in order. A listing is shared only if nothing is lost in it: a
    commit from a listing without a topic would drop the topic's position."""

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context, f"headgate-{context.pipeline}")
        self._bronze = bronze = context.bronze
        self._idling = Idling(self._source.idle_after)
        self._arrivals = Arrivals()
        self._limit, self._record_size = self._source.max_per_batch, UNKNOWN_SIZE
        self._taken = 0
        self._lock = threading.Lock()
        self._listing_lock = threading.Lock()
        self._goal: dict[int, int] | None = None
        state = bronze.table.refresh()
        self._topics = tuple(BronzePayload.of(state).topics)
        self._moved(state)
        try:
            self._share(self._begin(begun=state.n > 0))
        except BaseException:
            self._cluster.close()
            raise

    def poll(self, *, final: bool) -> None:
        """List the ends of the logs. Raises OffsetsLostError if unread records are lost."""
        listing = self._list()
        if final:
            self._goal = dict(listing.ends)

    def backlog(self) -> Backlog:
        now = self._context.monotonic()
        with self._lock:
            listing = self._listing
            position = listing.position(self._offsets)
            idle = self._idling.idle(position)
            return kafka_backlog(now, listing, position, self._arrivals, self._clocks, idle)

    def has_ingested_all(self) -> bool:
        return self._goal is not None and not self._unread()

    def batch_took(self, took: timedelta) -> None:
        """Set the limit of the next batch by the target duration."""
        source = self._source
        self._limit = next_limit(
            self._limit,
            self._taken,
            took,
            target=source.batch_target,
            lowest=source.min_per_batch,
            highest=source.max_per_batch,
        )

    def _commit(
        self, listing: TopicListing, position: dict[int, int], reached: dict[int, int]
    ) -> None:
        with self._lock:
            idle = self._idling.idle(position)
        # Not earlier: the commit says that the idle partitions have been silent until its time.
        now = self._context.clock()
        rows = self._reader.read(listing.partitions, position, reached, now, self._record_size)
        with self._lock:
            arrived = now - self._longest_wait(position, reached)
        stops = BatchEnd(
            *(
                encoded_offsets(reached),
                waited_for(listing.partitions, idle),
                tuple(listing.topics),
            ),
            arrived=arrived,
        )
        read = [number for number, end in reached.items() if end > position[number]]
        committed = self._bronze.ingest(rows, stops, now, self._verify(listing, read))
        self._record_size = rows.record_size
        self._taken = sum(reached.values()) - sum(position.values())
        self._moved(committed)

    def _longest_wait(self, position: Offsets, reached: Offsets) -> timedelta:
        """How long the oldest record of a range has waited, as far as this job has observed it."""
        now, read = self._context.monotonic(), (p for p in position if reached[p] > position[p])
        waits = (self._arrivals.waiting(now, number, position[number]) for number in read)
        return timedelta(seconds=max(waits, default=0.0))

    def _verify(self, listing: TopicListing, read: Sequence[int]) -> Callable[[], None]:
        """Check that no topic was recreated while the partitions ``read`` were read: the new topic
        has other records at the same offsets."""

        def verify() -> None:
            there = self._topics_there()
            if {topic.label for topic in there} != listing.labels:
                self._list()
                # A topic whose first records these are has no position yet that could be lost.
                require_same(listing.topics, read, there)

        return verify

    def _moved(self, committed: State) -> None:
        with self._lock:
            read = BronzePayload.of(committed)
            self._offsets, self._clocks = decoded_offsets(read.offsets), read.clocks

    def _view(self) -> tuple[TopicListing, Offsets, Offsets]:
        with self._lock:
            return self._listing, self._offsets, self._wanted(self._listing)

    def _wanted(self, listing: TopicListing) -> Offsets:
        """The ends of the logs, now or at the final poll."""
        if self._goal is None:
            return listing.ends
        return {number: end for number, end in self._goal.items() if number in listing.ends}

    def _begin(self, *, begun: bool) -> TopicListing:
        """Make the first listing. Commit the position if reading begins at the declared start or
        after an accepted gap."""
        listing = self._list_raw()
        if not begun:
            self._start(listing)
            return listing
        lost = self._losses(listing)
        return self._accept(listing, lost) if lost else listing

    def _start(self, listing: TopicListing) -> None:
        """Commit the start before anything is read, so that "latest" is the same after a crash."""
        parts = listing.partitions.values()
        start = self._source.start
        if isinstance(start, datetime | str):
            offsets = self._cluster.offsets(parts, start)
        else:
            first = self._earliest(listing)
            offsets = {p.number: start.get(p.partition, first[p.number]) for p in parts}
            check_offsets(start, listing, first, str(self._context.declaration))
        self._begin_at(offsets, listing)

    def _accept(self, listing: TopicListing, lost: tuple[Loss, ...]) -> TopicListing:
        if not self._context.accept_gap or not all(loss.acceptable for loss in lost):
            raise lost_error(lost)
        if not listing.partitions:
            # No topic is left to continue with: ``topics`` raises an error that names them.
            self._cluster.topics()
            raise lost_error(lost)
        earliest = self._earliest(listing)
        position = listing.position(self._offsets)
        offsets = {number: max(offset, earliest[number]) for number, offset in position.items()}
        self._begin_at(offsets, listing, lost)
        return replace(listing, first={})

    def _begin_at(
        self, offsets: Offsets, listing: TopicListing, lost: tuple[Loss, ...] = ()
    ) -> None:
        """Commit a position without records. Reading continues from it."""
        gaps = tuple(loss.as_dict() for loss in lost)
        reached = BatchEnd(encoded_offsets(offsets), tuple(offsets), tuple(listing.topics), gaps)
        self._moved(self._bronze.ingest(PartedRecords(()), reached, self._context.clock()))

    def _require_input(self) -> None:
        """List again, and check for lost records."""
        listing = self._list()
        if lost := self._losses(listing):
            raise lost_error(lost)

    def _losses(self, listing: TopicListing) -> tuple[Loss, ...]:
        earliest = self._earliest(listing)
        return losses(listing.topics, self._offsets, listing.partitions, earliest, listing.ends)

    def _earliest(self, listing: TopicListing) -> Offsets:
        parts = listing.partitions.values()
        return self._cluster.offsets(parts, "earliest")

    def _list(self) -> TopicListing:
        """List, and compare with the position. Raises OffsetsLostError."""
        with self._listing_lock:
            listing = self._list_raw()
            offsets = self._offsets
            # This check sends no request and precedes reads. A failed read finds expired records.
            if lost := losses(listing.topics, offsets, listing.partitions, offsets, listing.ends):
                raise lost_error(lost)
            self._share(listing)
        return listing

    def _share(self, listing: TopicListing) -> None:
        """Share a listing: the next range and the idle partitions come from the same listing. Its
        topics keep their places, even before a commit names them."""
        with self._lock:
            now = self._context.monotonic()
            self._listing, self._topics = listing, tuple(listing.topics)
            self._idling.observe(now, listing.ends)
            self._arrivals.observe(now, listing.position(self._offsets), listing.ends)

    def _list_raw(self) -> TopicListing:
        with self._lock:
            known, offsets = self._topics, self._offsets
        topics = self._topics_there()
        names = enrolled(known, topics)
        parts = partitions(names, topics)
        ends = self._cluster.offsets(parts.values(), "latest")
        new = [p for number, p in parts.items() if number not in offsets]
        return TopicListing(names, parts, ends, self._cluster.offsets(new, "earliest"))

    def _topics_there(self) -> tuple[Topic, ...]:
        """The listed topics. Empty if there are none although records were read: the topics are
        lost. If no records were read, the name is wrong, and this raises TopicMissingError."""
        try:
            return self._cluster.topics()
        except TopicMissingError:
            if not self._offsets:
                raise
            return ()


def check_offsets(
    start: Mapping[int, int], listing: TopicListing, first: Offsets, file: str
) -> None:
    """``start`` has offsets by the partitions of the only topic, ``first`` the first offsets by
    number. ``file`` is the declaration. Raises SourceError if a partition has no such offset."""
    there = {p.partition: p for p in listing.partitions.values()}
    for number, offset in sorted(start.items()):
        partition = there.get(number)
        if partition is None:
            raise _refused(f"{file}: start: no partition {number}; the topic has {len(there)}")
        low, high = first[partition.number], listing.ends[partition.number]
        if not low <= offset <= high:
            raise _refused(
                f"{file}: start: {partition} has no offset {offset:,}; it has {low:,} to {high:,}"
            )


def _refused(message: str) -> SourceError:
    return SourceError(message, remedy="change start, or say earliest, latest or a time")
