"""Reads a topic without committing offsets."""

from __future__ import annotations

import base64
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headgate.setup.broker import client
from headgate.setup.broker.client import ANSWERS_WITHIN, BrokerUnreachableError, NoSuchTopicError

Start = int | Literal["earliest", "latest"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GONE = (
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


@dataclass(frozen=True)
class ConsumedRecord:
    """``timestamp`` is the producer's or the broker's, as the topic is configured."""

    partition: int
    offset: int
    timestamp: datetime | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: bytes | None


def consume(
    servers: str, topic: str, start: Start = "earliest", *, follow: bool = False
) -> Generator[ConsumedRecord, None, None]:
    """The committed records of all partitions, in order within each partition.

    An offset as ``start`` applies to every partition; if a partition does not have it, the nearest
    offset is used. Ends at the end offsets that the partitions have when it begins. With ``follow``
    it never ends, and waits while no broker answers.

    Raises BrokerUnreachableError or NoSuchTopicError.
    """
    numbers = client.partitions(servers, topic)
    consumer = Consumer(
        client.settings(
            servers,
            group_id="headgate-kafka-consume",
            enable_auto_commit=False,
            isolation_level="read_committed",
            enable_partition_eof=True,
            auto_offset_reset="earliest",
        )
    )
    try:
        starts, left = [], {}
        for number in numbers:
            low, high = _range(consumer, TopicPartition(topic, number), servers)
            starts.append(TopicPartition(topic, number, _first(start, low, high)))
            if starts[-1].offset < high:
                left[number] = high
        consumer.assign(starts)
        yield from _records(consumer, left, servers, topic, follow)
    finally:
        consumer.close()


def _range(consumer: Consumer, partition: TopicPartition, servers: str) -> tuple[int, int]:
    try:
        found = consumer.get_watermark_offsets(partition, timeout=ANSWERS_WITHIN)
    except KafkaException as error:
        raise BrokerUnreachableError(servers, ANSWERS_WITHIN, client.error_text(error)) from error
    if found is None:
        raise BrokerUnreachableError(servers, ANSWERS_WITHIN, None)
    return found


def _first(start: Start, low: int, high: int) -> int:
    if isinstance(start, int):
        return min(max(start, low), high)
    return low if start == "earliest" else high


def _records(
    consumer: Consumer, left: dict[int, int], servers: str, topic: str, follow: bool
) -> Iterator[ConsumedRecord]:
    """``left`` has the exclusive end offset of each partition. The record before it may be missing
    or not committed: a partition also ends at the broker's end-of-partition event."""
    heard, reason = time.monotonic(), None
    while follow or left:
        message = consumer.poll(0.5)
        fault = None if message is None else message.error()
        if fault is not None and fault.code() in _GONE:
            raise NoSuchTopicError(servers, topic, ())
        if message is None or (fault is not None and fault.code() != KafkaError._PARTITION_EOF):
            reason = fault.str() if fault else reason
            if not follow and time.monotonic() - heard > ANSWERS_WITHIN:
                raise BrokerUnreachableError(servers, ANSWERS_WITHIN, reason)
            continue
        heard, number = time.monotonic(), message.partition() or 0
        end = left.get(number, 0)
        if fault is None:
            record = _record(message)
            if follow or record.offset < end:
                yield record
            if record.offset + 1 < end:
                continue
        left.pop(number, None)


def _record(message: Message) -> ConsumedRecord:
    headers: Any = message.headers() or []
    return ConsumedRecord(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp=_time(*message.timestamp()),
        key=message.key(),
        headers=tuple(headers),
        value=message.value(),
    )


def _time(kind: int, milliseconds: int) -> datetime | None:
    """None if there is no timestamp, or if it is out of range: producers may send any number."""
    if kind == TIMESTAMP_NOT_AVAILABLE or milliseconds == -1:  # both are Kafka's "none"
        return None
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def as_document(record: ConsumedRecord) -> dict[str, Any]:
    """A record as JSON. Bytes are text; if they are not UTF-8, they are in a field ``…_base64``."""
    at = record.timestamp
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": at and at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **_text("key", record.key),
        "headers": [{"name": name, **_text("value", value)} for name, value in record.headers],
        **_text("value", record.value),
    }


def _text(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode("ascii")}
