"""Loads of topics: which ranges are loaded, and how they are read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from headgate.declaration.kinds import BRONZE
from headgate.declaration.quantities import plural
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.errors import OtherKindError, SourceError
from headgate.flow.sources.kafka.batches import KafkaBatches, KafkaRange
from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.failures import OffsetsLostError
from headgate.flow.sources.kafka.losses import require_kept
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import (
    Topic,
    TopicListing,
    TopicPartition,
    decoded_offsets,
    encoded_offsets,
    partitions,
    topic_of,
)
from headgate.flow.sources.loading import LoadPlan, LoadWanted, StepBounds, Steps
from headgate.flow.sources.micro_batches import BatchEnd, SourceContext
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table

_RANGE = re.compile(r"(?P<topic>[^/:]+)(?:/(?P<partition>\d+)(?::(?P<first>\d+)-(?P<end>\d+))?)?")
_LEAST_RECORDS, _FIRST_RECORDS = 5_000, 20_000
_RECORD_SIZE = 1_000.0


@dataclass(frozen=True)
class NamedRange:
    """A range that a person names: a topic, one of its partitions, or offsets [first, end)."""

    topic: str
    partition: int | None = None
    first: int | None = None
    end: int | None = None

    @staticmethod
    def parse(text: str) -> NamedRange:
        """Raises SourceError."""
        found = _RANGE.fullmatch(text)
        if found is None:
            said = f"{text!r} is not a range of a topic"
            raise SourceError(said, "write it as topic, topic/partition or topic/partition:0-1000")
        numbers = (found[name] for name in ("partition", "first", "end"))
        named = NamedRange(
            found["topic"], *(None if each is None else int(each) for each in numbers)
        )
        if named.first is not None and named.end is not None and named.first >= named.end:
            said = f"{text!r} has no records: it ends before {named.end:,}"
            raise SourceError(said, "write the first offset, and the offset after the last one")
        return named

    def has(self, partition: TopicPartition) -> bool:
        return partition.topic == self.topic and self.partition in (None, partition.partition)


def plan_load(place: DeployedSource, wanted: LoadWanted, spark: SparkSession) -> LoadPlan:
    """Without named offsets, a load reads the records before the first one that the stream has
    read of a partition. Raises SourceError."""
    if not wanted.topics:
        raise OtherKindError(f"{place.source.name} reads topics", "name one: --kafka TOPIC")
    names = [NamedRange.parse(text) for text in wanted.topics]
    require_once(names)
    bronze = Table(place.storage, BRONZE.path(place.source.name), pipeline=place.pipeline)
    enrolled = BronzePayload.of(bronze.refresh()).topics
    cluster = Cluster(spark, place.source.reads)
    try:
        listed = [topic for topic in cluster.topics() if topic.label in enrolled]
        found = partitions(enrolled, listed)
        meant = {n: p for n, p in found.items() if any(each.has(p) for each in names)}
        _require_known(names, meant)
        earliest = cluster.offsets(meant.values(), wanted.begin or "earliest")
        latest = cluster.offsets(meant.values(), wanted.end or "latest")
        kept = cluster.offsets(meant.values(), "earliest")
    finally:
        cluster.close()
    begun = _first_read(bronze)
    before = {number: min(end, begun.get(number, end)) for number, end in latest.items()}
    ranges = {n: _range(names, p, (earliest[n], before[n])) for n, p in meant.items()}
    ranges = {number: each for number, each in ranges.items() if each[1] > each[0]}
    _require_there(ranges, meant, kept, latest)
    if not ranges:
        raise SourceError(
            "there is no record before those that the stream has read",
            remedy="name offsets: topic/partition:FIRST-END",
        )
    _require_ids(place, ranges, begun, meant)
    records = sum(end - first for first, end in ranges.values())
    names_read = {meant[number].topic for number in ranges}
    return LoadPlan(
        begins={str(number): first for number, (first, _) in ranges.items()},
        ends={str(number): end for number, (_, end) in ranges.items()},
        what=f"{plural(records, 'record')} of {', '.join(wanted.topics)}",
        unit="records",
        details={"topics": sorted(topic.label for topic in listed if topic.name in names_read)},
    )


def require_once(names: Sequence[NamedRange]) -> None:
    """Raises SourceError for a partition with two ranges: a load reads one range of each."""
    ranged = Counter((each.topic, each.partition) for each in names if each.first is not None)
    for (topic, partition), times in ranged.items():
        if times > 1:
            raise SourceError(
                f"{topic}/{partition} is named with {times} ranges; a load reads one of them",
                remedy="begin another load when this one has ended",
            )


def _require_known(names: Sequence[NamedRange], meant: Mapping[int, TopicPartition]) -> None:
    for each in names:
        if not any(each.has(partition) for partition in meant.values()):
            which = each.topic if each.partition is None else f"{each.topic}/{each.partition}"
            raise SourceError(
                f"the pipeline does not read {which}; a load can only read the pipeline's own "
                "topics",
                remedy="name a topic of the declaration, or load files",
            )


def _range(
    names: Sequence[NamedRange], partition: TopicPartition, given: tuple[int, int]
) -> tuple[int, int]:
    """The offsets of a partition that a person has named, otherwise ``given``."""
    for each in names:
        if each.has(partition) and each.first is not None and each.end is not None:
            return each.first, each.end
    return given


def _require_there(
    ranges: Mapping[int, tuple[int, int]],
    meant: Mapping[int, TopicPartition],
    earliest: Mapping[int, int],
    latest: Mapping[int, int],
) -> None:
    for number, (first, end) in ranges.items():
        if first < earliest[number] or end > latest[number]:
            raise SourceError(
                f"{meant[number]} has the offsets {earliest[number]:,} to {latest[number]:,}, and "
                f"{first:,} to {end:,} are requested",
                remedy="name offsets that are there",
            )


def _require_ids(
    place: DeployedSource,
    ranges: Mapping[int, tuple[int, int]],
    begun: Mapping[int, int],
    meant: Mapping[int, TopicPartition],
) -> None:
    """Raises SourceError if the stream has read some of the records, and there are no ids or there
    is no rule for duplicates: these records would count twice."""
    record = place.source.record
    if record.event_id and record.duplicates is not None:
        return
    for number, (_, end) in ranges.items():
        if end > begun.get(number, end):
            raise SourceError(
                f"the stream has read {meant[number]} from {begun[number]:,} on; without a rule "
                "for duplicates, its records would count twice",
                remedy=f"end at {begun[number]:,}",
            )


def _first_read(bronze: Table) -> dict[int, int]:
    """The first offset that the stream has read of each partition. Loads and replays do not count.
    If there is no record, it is the offset at which the stream continues."""
    found: dict[int, int] = {}
    own = (ds.field("offset") >= 0) & (ds.field("partition") >= 0)
    scanner = bronze.handle.to_pyarrow_dataset().scanner(["partition", "offset"], filter=own)
    for batch in scanner.to_batches():
        for number in pc.unique(batch.column(0)).to_pylist():
            offsets = batch.column(1).filter(pc.equal(batch.column(0), number))
            found[number] = min(pc.min(offsets).as_py(), found.get(number, 1 << 62))
    reached = decoded_offsets(BronzePayload.of(bronze.state).offsets)
    return {number: found.get(number, offset) for number, offset in reached.items()}


class KafkaLoad(KafkaBatches):
    """Ranges of partitions whose ends are known, in batches of at most the stream's limit
    (``Steps``)."""

    def __init__(self, context: SourceContext, at: BronzePayload, plan: LoadPlan) -> None:
        super().__init__(context, f"headgate-{context.pipeline}-load")
        self._plan = plan
        most = self._source.max_per_batch
        bounds = StepBounds.within(_LEAST_RECORDS, _FIRST_RECORDS, most)
        self._steps = Steps(bounds, context.is_shared)
        self._limit, self._record_size = self._steps.limit, _RECORD_SIZE
        try:
            self._listing = self._enrolled(at.topics)
        except BaseException:
            self._cluster.close()
            raise

    def poll(self, at: BronzePayload, *, final: bool) -> None:
        return

    def next_range(self, at: BronzePayload) -> KafkaRange | None:
        self._limit = self._steps.limit
        return super().next_range(at)

    def batch_took(self, planned: KafkaRange, took: timedelta) -> None:
        self._steps.took(took)

    def backlog(self, at: BronzePayload) -> Backlog:
        return Backlog("records", sum(self._unread(at).values()))

    def _view(self, at: BronzePayload) -> tuple[TopicListing, Offsets, frozenset[int]]:
        return self._listing, self._listing.ends, frozenset()

    def _end(self, planned: KafkaRange, now: datetime) -> BatchEnd:
        return BatchEnd(encoded_offsets(planned.reached))

    def _enrolled(self, known: Sequence[str]) -> TopicListing:
        """The partitions of the load, and where it ends. Raises as ``_listed``."""
        found, ends = partitions(known, self._listed()), decoded_offsets(self._plan.ends)
        return TopicListing(known, {number: found[number] for number in ends}, ends, first={})

    def _listed(self) -> list[Topic]:
        """The topics of the load. Raises BrokersUnreachableError, and OffsetsLostError: a topic
        that was recreated has other records at the same offsets."""
        wanted = set(self._plan.details["topics"])
        listed = self._cluster.topics()
        found = [topic for topic in listed if topic.label in wanted]
        if gone := wanted - {topic.label for topic in found}:
            names = ", ".join(sorted(map(topic_of, gone)))
            raise OffsetsLostError(
                f"deleted or recreated since the load was requested: {names}",
                remedy="end the load: what it has read stays",
            )
        return found

    def _verify(self, planned: KafkaRange) -> None:
        """Raises as ``_listed``: records that were read may expire now."""
        self._listed()

    def _require_input(self, planned: KafkaRange) -> None:
        """Raises as ``_listed``, and OffsetsLostError if records that are still to be read have
        expired."""
        self._listed()
        parts = planned.listing.partitions
        earliest = self._cluster.offsets(parts.values(), "earliest")
        require_kept(parts, planned.position, earliest, planned.listing.ends)

    def _readable_before(self, error: Exception, planned: KafkaRange) -> dict[int, int]:
        """As ``readable_before``, with what a person can do about a load."""
        try:
            return super()._readable_before(error, planned)
        except SourceError as found:
            raise SourceError(
                found.message,
                remedy="load the records after it: name their offsets, topic/partition:FIRST-END",
            ) from None
