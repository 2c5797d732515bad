"""What the stream and the loads of a Kafka source share: a batch is a range of the partitions,
which is tried several times."""

from __future__ import annotations

import math
from abc import abstractmethod

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.listing import TopicListing, decoded
from headgate.flow.sources.kafka.ranges import Offsets, next_range, unread
from headgate.flow.sources.kafka.read_failure import read_failure
from headgate.flow.sources.kafka.reading import KafkaReader
from headgate.flow.sources.kafka.unreadable import readable_before
from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext

READ_ATTEMPTS = 3


class KafkaBatches(MicroBatchSource):
    """``_limit`` is the most records of the next batch, ``_record_size`` about how many bytes a
    record has. ``group`` begins the group id of the consumers."""

    every = 1.0  # seconds between listings of the logs' ends

    _limit: int
    _record_size: float

    def __init__(self, context: SourceContext, group: str) -> None:
        self._context = context
        self._source: KafkaSource = context.source.reads
        self._cluster = Cluster(context.spark, self._source, context.check)
        group = f"{group}-{context.bronze.table.epoch}"
        self._reader = KafkaReader(context.spark, self._source, group, context.cores)

    def pending(self) -> int:
        return math.ceil(sum(self._unread().values()) / self._limit)

    def ingest(self) -> bool:
        attempt, readable = 1, dict[int, int]()
        while True:
            listing, offsets, ends = self._view()
            position = listing.position(offsets)
            ends = {p: min(end, readable.get(p, end)) for p, end in ends.items()}
            reached = next_range(position, ends, self._limit)
            if reached == position:
                return False
            try:
                self._commit(listing, position, reached)
                return True
            except (PySparkException, Py4JError) as error:  # toArrow does not convert JVM errors
                if decoded(self._context.bronze.offsets) != offsets:
                    raise  # bronze has committed the range, which must not be committed twice
                if before := self._readable_before(error, listing, position):
                    readable |= before
                    continue
                # This also precedes giving up: what it raises is the cause of the failure.
                self._require_input()
                if attempt == READ_ATTEMPTS:
                    if (failure := read_failure(error, self._source)) is not None:
                        raise failure from None  # the text of its cause may show secrets
                    raise
                attempt += 1
                # The records may have been too large for the driver: workers read the next attempt.
                self._record_size = math.inf

    def close(self) -> None:
        self._cluster.close()

    def _unread(self) -> dict[int, int]:
        listing, offsets, ends = self._view()
        return unread(listing.position(offsets), ends)

    @abstractmethod
    def _view(self) -> tuple[TopicListing, Offsets, Offsets]:
        """The listing, the offsets of bronze's last commit, and the ends up to which is read."""

    @abstractmethod
    def _commit(
        self, listing: TopicListing, position: dict[int, int], reached: dict[int, int]
    ) -> None:
        """Read a range, and commit it to bronze."""

    @abstractmethod
    def _require_input(self) -> None:
        """After a failed read, raises BrokersUnreachableError if the brokers do not answer, and
        OffsetsLostError if records that are to be read are lost."""

    def _readable_before(
        self, error: Exception, listing: TopicListing, position: Offsets
    ) -> dict[int, int]:
        """As ``readable_before``."""
        return readable_before(error, listing.partitions, position)
