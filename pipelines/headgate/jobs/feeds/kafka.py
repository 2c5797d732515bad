"""The feed of the Kafka source: from ranges of a topic's partitions to bronze commits.

Positions are mere numbers of batches: what one takes is decided when it begins, from where bronze
stands and what fits the time that batches shall take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.bronze.stage import BronzeStage, Reached
from headgate.sources.errors import SourceError
from headgate.sources.kafka.arrivals import Arrivals
from headgate.sources.kafka.cluster import Cluster
from headgate.sources.kafka.errors import BrokersUnreachableError, OffsetsLostError
from headgate.sources.kafka.idling import Idling, waited_for
from headgate.sources.kafka.listing import Listing, decoded, encoded
from headgate.sources.kafka.losses import Loss, losses
from headgate.sources.kafka.ranges import Offsets, next_limit, next_range, unread
from headgate.sources.kafka.reading import KafkaReader
from headgate.sources.kafka.topics import enrolled, partitions
from headgate.spec.model import KafkaSource, Pipeline
from headgate.storage.backlog import Backlog, PartitionBacklog

LIST_EVERY = 1.0  # seconds between looks at the ends of the logs
ASK_AGAIN = 1.0  # seconds between attempts to reach the brokers
READ_ATTEMPTS = 3
MOST_ENDS = 1000

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Surroundings:
    """What a feed is given by its driver: ``check`` raises where the driver shall end, ``clock``
    is the wall's, ``accept_gap`` says that what is gone may be passed over."""

    check: Callable[[], None]
    clock: Callable[[], datetime]
    cores: int = 2
    accept_gap: bool = False
    monotonic: Callable[[], float] = time.monotonic


class KafkaFeed:
    """Listing and reading happen on different threads; ``_lock`` guards what they share, and
    ``_listing_lock`` keeps listings in their order."""

    every = LIST_EVERY

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, bronze: BronzeStage, around: Surroundings
    ) -> None:
        assert pipeline.source.kafka is not None
        self._source: KafkaSource = pipeline.source.kafka
        self._file = str(pipeline.file)
        self._bronze = bronze
        self._around = around
        self._cluster = Cluster(spark, self._source)
        group = f"headgate-{pipeline.name}-{bronze.table.epoch}"
        self._reader = KafkaReader(spark, self._source, group, around.cores)
        self._idling = Idling(self._source.idle_after)
        self._arrivals = Arrivals()
        self._limit = self._source.max_per_batch
        self._taken = 0
        self._lock = threading.Lock()
        self._listing_lock = threading.Lock()
        self._silent_since: float | None = None
        self._goal: dict[int, int] | None = None
        state = bronze.table.refresh()
        self._topics = tuple(state.topics)
        self._offsets = decoded(state.offsets)
        self._listing = self._begin(begun=state.n > 0)

    @property
    def position(self) -> int:
        return 0

    def poll(self, *, final: bool) -> None:
        """Look how far the logs reach. Raises OffsetsLostError where what was not read is gone,
        BrokersUnreachableError after a while without an answer."""
        try:
            listing = self._list()
        except BrokersUnreachableError as error:
            self._bear(error)
            return
        self._silent_since = None
        with self._lock:
            position = listing.position(self._offsets)
            now = self._around.monotonic()
            self._idling.observe(now, listing.ends)
            self._arrivals.observe(now, position, listing.ends)
            if final:
                self._goal = dict(listing.ends)

    def ends(self, after: int) -> list[int]:
        waiting = sum(self._unread().values())
        batches = min(-(-waiting // self._limit), MOST_ENDS)
        return list(range(after + 1, after + batches + 1))

    def backlog(self, after: int) -> Backlog:
        now = self._around.monotonic()
        with self._lock:
            listing, offsets = self._listing, dict(self._offsets)
            position = listing.position(offsets)
            behind = unread(position, listing.ends)
            parts = {
                str(partition): PartitionBacklog(
                    behind.get(number, 0),
                    round(self._arrivals.waiting(now, number, position[number]), 1),
                )
                for number, partition in sorted(listing.partitions.items())
            }
        return Backlog("records", sum(behind.values()), partitions=parts)

    def has_absorbed_all(self, position: int) -> bool:
        return self._goal is not None and not self._unread()

    def absorb(self, start: int, end: int) -> bool:
        attempt = 1
        while True:
            with self._lock:
                listing, offsets = self._listing, dict(self._offsets)
            position = listing.position(offsets)
            reached = next_range(position, self._goal or listing.ends, self._limit)
            if reached == position:
                return False
            try:
                self._commit(listing, position, reached)
                return True
            except (PySparkException, Py4JError):  # toArrow lets the JVM's own through
                self._look_for_losses()
                attempt += 1
                if attempt > READ_ATTEMPTS:
                    raise

    def batch_took(self, took: timedelta) -> None:
        """Let the next batch take as much as fits its time."""
        source = self._source
        self._limit = next_limit(
            self._limit,
            self._taken,
            took,
            target=source.batch_target,
            lowest=source.min_per_batch,
            highest=source.max_per_batch,
        )

    @property
    def trouble(self) -> str | None:
        if self._silent_since is None:
            return None
        silent = self._around.monotonic() - self._silent_since
        return f"no answer from the brokers {self._source.servers} for {silent:.0f} s"

    def close(self) -> None:
        self._cluster.close()

    def _commit(self, listing: Listing, position: dict[int, int], reached: dict[int, int]) -> None:
        now = self._around.clock()
        rows = self._reader.read(listing.partitions, position, reached, now)
        with self._lock:
            idle = self._idling.idle(position)
        stops = Reached(
            encoded(reached), waited_for(listing.partitions, idle), tuple(listing.topics)
        )
        self._bronze.absorb(rows, stops, now, self._verify(listing))
        self._taken = sum(reached.values()) - sum(position.values())
        self._moved(listing, reached)

    def _verify(self, listing: Listing) -> Callable[[], None]:
        """A topic that was made anew while it was read has other records at the same offsets."""

        def verify() -> None:
            if enrolled(listing.topics, self._cluster.topics()) != tuple(listing.topics):
                self._list()

        return verify

    def _moved(self, listing: Listing, reached: dict[int, int]) -> None:
        with self._lock:
            self._offsets = dict(reached)
            self._topics = tuple(listing.topics)

    def _unread(self) -> dict[int, int]:
        with self._lock:
            listing = self._listing
            return unread(listing.position(self._offsets), self._goal or listing.ends)

    def _begin(self, *, begun: bool) -> Listing:
        """The first listing, and where it takes a commit to begin: at the declared start, or
        behind a gap that was accepted."""
        listing = self._persist(self._list_raw)
        if not begun:
            self._start(listing)
        lost = self._losses(listing) if begun else ()
        if lost:
            listing = self._accept(listing, lost)
        self._listing = listing
        return listing

    def _start(self, listing: Listing) -> None:
        """Committed before anything is read: "latest" must not be another place after a crash."""
        parts = listing.partitions.values()
        start = self._source.start
        if isinstance(start, datetime | str):
            offsets = self._persist(lambda: self._cluster.offsets(parts, start))
        else:
            first = self._persist(lambda: self._cluster.offsets(parts, "earliest"))
            offsets = {p.number: start.get(p.partition, first[p.number]) for p in parts}
            self._check_start(listing, first, offsets)
        self._commit_nothing(Reached(encoded(offsets), tuple(offsets), tuple(listing.topics)))
        self._moved(listing, offsets)

    def _check_start(self, listing: Listing, first: Offsets, offsets: Offsets) -> None:
        for number, partition in listing.partitions.items():
            if not first[number] <= offsets[number] <= listing.ends[number]:
                raise SourceError(
                    f"{self._file}: start: {partition} has no offset {offsets[number]:,}; it has "
                    f"{first[number]:,} to {listing.ends[number]:,}",
                    remedy="change start, or say earliest, latest or a time",
                )

    def _accept(self, listing: Listing, lost: tuple[Loss, ...]) -> Listing:
        if not self._around.accept_gap or not all(loss.acceptable for loss in lost):
            raise self._lost(lost)
        earliest = self._persist(
            lambda: self._cluster.offsets(listing.partitions.values(), "earliest")
        )
        position = listing.position(self._offsets)
        offsets = {number: max(offset, earliest[number]) for number, offset in position.items()}
        gaps = tuple(loss.as_dict() for loss in lost)
        reached = Reached(encoded(offsets), tuple(offsets), tuple(listing.topics), gaps)
        self._commit_nothing(reached)
        self._moved(listing, offsets)
        return replace(listing, first={})

    def _commit_nothing(self, reached: Reached) -> None:
        self._bronze.absorb(self._bronze.no_records(), reached, self._around.clock())

    def _look_for_losses(self) -> None:
        """After a failed read: list again, however long that takes, and see what is gone."""
        listing = self._persist(self._list)
        if lost := self._losses(listing):
            raise self._lost(lost)

    def _losses(self, listing: Listing) -> tuple[Loss, ...]:
        earliest = self._persist(
            lambda: self._cluster.offsets(listing.partitions.values(), "earliest")
        )
        with self._lock:
            topics, offsets = self._topics, dict(self._offsets)
        return losses(topics, offsets, listing.partitions, earliest, listing.ends)

    def _lost(self, lost: tuple[Loss, ...]) -> OffsetsLostError:
        told = "\n".join(f"  {loss}" for loss in lost)
        remedy = (
            f"pass over it, which the ledger then tells: headgate run {self._file} --accept-gap"
        )
        if not all(loss.acceptable for loss in lost):
            remedy = "offsets would be given twice: read the topic into a root of its own: "
            remedy += f"headgate run {self._file} --root ANOTHER_FOLDER"
        return OffsetsLostError(f"records that were not read are gone:\n{told}", remedy=remedy)

    def _list(self) -> Listing:
        """List, and compare with what was read. Raises OffsetsLostError."""
        with self._listing_lock:
            listing = self._list_raw()
            with self._lock:
                topics, offsets = self._topics, dict(self._offsets)
                self._listing = listing
        # Expiry shows when reading fails; this costs nothing and comes before anything is read.
        if lost := losses(topics, offsets, listing.partitions, offsets, listing.ends):
            raise self._lost(lost)
        return listing

    def _list_raw(self) -> Listing:
        with self._lock:
            known, offsets = self._topics, dict(self._offsets)
        topics = self._cluster.topics()
        names = enrolled(known, topics)
        parts = partitions(names, topics)
        ends = self._cluster.offsets(parts.values(), "latest")
        new = [p for number, p in parts.items() if number not in offsets]
        return Listing(names, parts, ends, self._cluster.offsets(new, "earliest"))

    def _persist(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer, as long as the declaration allows."""
        while True:
            try:
                answer = ask()
            except BrokersUnreachableError as error:
                self._bear(error)
                self._around.check()
                time.sleep(ASK_AGAIN)
            else:
                self._silent_since = None
                return answer

    def _bear(self, error: BrokersUnreachableError) -> None:
        now = self._around.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        silent = timedelta(seconds=now - self._silent_since)
        if silent >= self._source.unreachable_after:
            raise BrokersUnreachableError(
                f"{error.message}; asked for {silent.total_seconds():.0f} s "
                "(unreachable_after in the declaration)",
                remedy=error.remedy,
            ) from None
