"""Micro-batches over topics: ranges of their partitions.

The range of a batch is decided when it begins, from bronze's position and the target duration of
batches.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.idling import Idling, waited_for
from headgate.flow.sources.kafka.backlog import Arrivals, kafka_backlog
from headgate.flow.sources.kafka.batches import KafkaBatches, KafkaRange
from headgate.flow.sources.kafka.failures import TopicMissingError
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
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload

UNKNOWN_SIZE = 4_000
"""The assumed size of a record in bytes until one was read."""


class KafkaMicroBatches(KafkaBatches):
    """Listing and reading run on different threads. ``_lock`` guards shared fields, and
    ``_listing_lock`` keeps listings in order. A listing is shared only if nothing is lost in it: a
    commit from a listing without a topic would drop the topic's position."""

    def __init__(self, context: SourceContext, at: BronzePayload) -> None:
        super().__init__(context, f"headgate-{context.pipeline}")
        self._idling = Idling(self._source.idle_after)
        self._arrivals = Arrivals()
        self._limit, self._record_size = self._source.max_per_batch, UNKNOWN_SIZE
        self._lock = threading.Lock()
        self._listing_lock = threading.Lock()
        self._goal: dict[int, int] | None = None
        self._topics = tuple(at.topics)
        try:
            self._begin(at)
        except BaseException:
            self._cluster.close()
            raise

    def poll(self, at: BronzePayload, *, final: bool) -> None:
        """List the ends of the logs. Raises OffsetsLostError if unread records are lost."""
        listing = self._list(at)
        if final:
            self._goal = dict(listing.ends)

    def backlog(self, at: BronzePayload) -> Backlog:
        now = self._context.monotonic()
        with self._lock:
            listing = self._listing
            position = listing.position(decoded_offsets(at.offsets))
            idle = self._idling.idle(position)
            return kafka_backlog(now, listing, position, self._arrivals, at.clocks, idle)

    def batch_took(self, planned: KafkaRange, took: timedelta) -> None:
        """Set the limit of the next batch by the target duration."""
        source = self._source
        self._limit = next_limit(
            self._limit,
            planned.records,
            took,
            target=source.batch_target,
            lowest=source.min_per_batch,
            highest=source.max_per_batch,
        )

    def _end(self, planned: KafkaRange, now: datetime) -> BatchEnd:
        listing = planned.listing
        with self._lock:
            arrived = now - self._longest_wait(planned)
        return BatchEnd(
            *(
                encoded_offsets(planned.reached),
                waited_for(listing.partitions, planned.idle),
                tuple(listing.topics),
            ),
            arrived=arrived,
        )

    def _longest_wait(self, planned: KafkaRange) -> timedelta:
        """How long the oldest record of a range has waited, as far as this job has observed it."""
        now, position = self._context.monotonic(), planned.position
        waits = (self._arrivals.waiting(now, p, position[p]) for p in planned.partitions)
        return timedelta(seconds=max(waits, default=0.0))

    def _verify(self, planned: KafkaRange) -> None:
        there = self._topics_there(planned.at)
        if {topic.label for topic in there} != planned.listing.labels:
            self._list(planned.at)
            # A topic whose first records these are has no position yet that could be lost.
            require_same(planned.listing.topics, planned.partitions, there)

    def _view(self, at: BronzePayload) -> tuple[TopicListing, Offsets, frozenset[int]]:
        with self._lock:
            listing = self._listing
            idle = self._idling.idle(listing.position(decoded_offsets(at.offsets)))
            return listing, self._wanted(listing), idle

    def _wanted(self, listing: TopicListing) -> Offsets:
        """The ends of the logs, now or at the final poll."""
        if self._goal is None:
            return listing.ends
        return {number: end for number, end in self._goal.items() if number in listing.ends}

    def _begin(self, at: BronzePayload) -> None:
        """Make the first listing. Reading begins at the declared start, after an accepted gap, or
        where bronze ended."""
        listing, offsets = self._list_raw(at), at.offsets
        if not offsets:
            self.start = self._declared_start(listing)
        elif lost := self._losses(listing, at):
            self.start = self._after_gap(listing, at, lost)
            listing = replace(listing, first={})
        if self.start is not None:
            offsets = self.start.offsets
        self._share(listing, decoded_offsets(offsets))

    def _declared_start(self, listing: TopicListing) -> BatchEnd:
        """It is committed before anything is read, so that "latest" is the same after a crash."""
        parts = listing.partitions.values()
        start = self._source.start
        if isinstance(start, datetime | str):
            offsets = self._cluster.offsets(parts, start)
        else:
            first = self._earliest(listing)
            offsets = {p.number: start.get(p.partition, first[p.number]) for p in parts}
            check_offsets(start, listing, first, str(self._context.declaration))
        return _start_at(offsets, listing)

    def _after_gap(
        self, listing: TopicListing, at: BronzePayload, lost: tuple[Loss, ...]
    ) -> BatchEnd:
        if not self._context.accept_gap or not all(loss.acceptable for loss in lost):
            raise lost_error(lost)
        if not listing.partitions:
            # No topic is left to continue with: ``topics`` raises an error that names them.
            self._cluster.topics()
            raise lost_error(lost)
        earliest = self._earliest(listing)
        position = listing.position(decoded_offsets(at.offsets))
        offsets = {number: max(offset, earliest[number]) for number, offset in position.items()}
        return _start_at(offsets, listing, lost)

    def _require_input(self, planned: KafkaRange) -> None:
        """List again, and check for lost records."""
        if lost := self._losses(self._list(planned.at), planned.at):
            raise lost_error(lost)

    def _losses(self, listing: TopicListing, at: BronzePayload) -> tuple[Loss, ...]:
        earliest, offsets = self._earliest(listing), decoded_offsets(at.offsets)
        return losses(listing.topics, offsets, listing.partitions, earliest, listing.ends)

    def _earliest(self, listing: TopicListing) -> Offsets:
        parts = listing.partitions.values()
        return self._cluster.offsets(parts, "earliest")

    def _list(self, at: BronzePayload) -> TopicListing:
        """List, and compare with the position. Raises OffsetsLostError."""
        offsets = decoded_offsets(at.offsets)
        with self._listing_lock:
            listing = self._list_raw(at)
            # This check sends no request and precedes reads. A failed read finds expired records.
            if lost := losses(listing.topics, offsets, listing.partitions, offsets, listing.ends):
                raise lost_error(lost)
            self._share(listing, offsets)
        return listing

    def _share(self, listing: TopicListing, offsets: Offsets) -> None:
        """Share a listing: the next range and the idle partitions come from the same listing. Its
        topics keep their places, even before a commit names them."""
        with self._lock:
            now = self._context.monotonic()
            self._listing, self._topics = listing, tuple(listing.topics)
            self._idling.observe(now, listing.ends)
            self._arrivals.observe(now, listing.position(offsets), listing.ends)

    def _list_raw(self, at: BronzePayload) -> TopicListing:
        with self._lock:
            known = self._topics
        topics = self._topics_there(at)
        names = enrolled(known, topics)
        parts = partitions(names, topics)
        ends = self._cluster.offsets(parts.values(), "latest")
        new = [p for number, p in parts.items() if str(number) not in at.offsets]
        return TopicListing(names, parts, ends, self._cluster.offsets(new, "earliest"))

    def _topics_there(self, at: BronzePayload) -> tuple[Topic, ...]:
        """The listed topics. Empty if there are none although records were read: the topics are
        lost. If no records were read, the name is wrong, and this raises TopicMissingError."""
        try:
            return self._cluster.topics()
        except TopicMissingError:
            if not at.offsets:
                raise
            return ()


def _start_at(offsets: Offsets, listing: TopicListing, lost: tuple[Loss, ...] = ()) -> BatchEnd:
    gaps = tuple(loss.as_dict() for loss in lost)
    return BatchEnd(encoded_offsets(offsets), tuple(offsets), tuple(listing.topics), gaps)


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
