"""Records that Spark cannot read because their timestamp is too large, such as nanoseconds in place
of milliseconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headgate.commands import pipeline_command
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import Partition

_OVERFLOW = re.compile(r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value")


def readable_before(
    error: Exception, partitions: Mapping[int, Partition], position: Offsets
) -> dict[int, int]:
    """Where the next batch must end because of such a record: the records before it are read first.

    Empty if ``error`` has another cause. Raises SourceError if the record is the next one.
    """
    found = _OVERFLOW.search(str(error))
    if found is None:
        return {}
    topic, partition, offset = found[1], int(found[2]), int(found[3])
    numbers = {(p.topic, p.partition): number for number, p in partitions.items()}
    number = numbers[topic, partition]
    if position[number] < offset:
        return {number: offset}
    raise SourceError(
        f"{topic}/{partition}: the record at offset {offset:,} has a timestamp that is out of "
        "range; Kafka's timestamps are in milliseconds",
        remedy=f"correct its producer, remove the topic's records up to {offset:,} "
        f"(kafka-delete-records), and pass over the gap: {pipeline_command('run', '--accept-gap')}",
    ) from None
