"""A real broker for tests, and operations on it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from headgate.setup.broker.consuming import ConsumedRecord
    from headgate.setup.broker.running import Broker

PATIENCE = 30.0  # seconds


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests, on a free port; each test creates its own topics. A test that stops
    or kills a broker starts another one with ``running.start``."""
    from headgate.setup.broker import running

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "UP_WITHIN", 240.0)  # another worker may use the processors
        started = running.start(tmp_path_factory.mktemp("kafka"))
    with started as broker:
        yield broker


@dataclass(frozen=True)
class Sent:
    """A record to produce. ``partition`` None: chosen by the key. ``at`` None: the producer's
    clock; an int is sent as the timestamp, in milliseconds."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    at: datetime | int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def create_topic(broker: Broker, partitions: int = 1, **config: str) -> str:
    """Create a topic with a unique name, which is returned. ``config`` has underscores instead of
    the dots of Kafka's keys."""
    from headgate.setup.broker import topics

    name = f"topic-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    topics.create(broker.servers, name, partitions, settings)
    return name


def produce(
    broker: Broker,
    topic: str,
    records: Sequence[Sent | bytes],
    transaction: Literal["commit", "abort"] | None = None,
) -> list[tuple[int, int]]:
    """Send records, wait for all, and return the partition and offset of each."""
    from confluent_kafka import Producer

    from headgate.setup.broker import client

    settings: dict[str, Any] = client.settings(broker.servers, acks="all", linger_ms=5)
    if transaction:
        settings["transactional.id"] = uuid.uuid4().hex
    producer = Producer(settings)
    places: dict[int, tuple[int, int]] = {}
    if transaction:
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
    for number, record in enumerate(records):
        sent = record if isinstance(record, Sent) else Sent(record)

        def told(error: Any, message: Any, number: int = number) -> None:
            assert error is None, error
            places[number] = (message.partition(), message.offset())

        optional: dict[str, Any] = {}
        if sent.partition is not None:
            optional["partition"] = sent.partition
        if isinstance(sent.at, datetime):
            optional["timestamp"] = round(sent.at.timestamp() * 1000)
        elif sent.at is not None:
            optional["timestamp"] = sent.at
        producer.produce(
            topic, sent.value, sent.key, headers=list(sent.headers), on_delivery=told, **optional
        )
        producer.poll(0)
    assert producer.flush(PATIENCE) == 0, "not all were delivered"
    if transaction == "commit":
        producer.commit_transaction(PATIENCE)
    elif transaction == "abort":
        producer.abort_transaction(PATIENCE)
    return [places[number] for number in range(len(records))]


def place_of(value: bytes, partitions: int) -> tuple[bytes, int]:
    """A key and a partition for a reading, by its id: copies of one id share a partition, even if
    their bytes differ. The partitions get uneven shares."""
    _, told, rest = value.partition(b'"id": "')
    id_ = rest.partition(b'"')[0] if told else value
    return id_, (sum(id_) % 8) * (sum(id_) % 7) % partitions


class Transaction:
    """A transaction. Until :meth:`commit`, readers of committed records see neither its records nor
    later ones in the same partitions."""

    def __init__(self, broker: Broker, topic: str) -> None:
        from confluent_kafka import Producer

        from headgate.setup.broker import client

        settings: dict[str, Any] = client.settings(broker.servers, acks="all", linger_ms=5)
        # The broker aborts a transaction that is open for longer; 15 minutes is its maximum.
        limits = {"transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 900_000}
        self._producer = Producer(settings | limits)
        self._topic = topic
        self._producer.init_transactions(PATIENCE)
        self._producer.begin_transaction()

    def send(self, *values: bytes, partition: int = 0) -> None:
        for value in values:
            self._producer.produce(self._topic, value, partition=partition)
        assert self._producer.flush(PATIENCE) == 0, "not all were delivered"

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE)


def add_partitions(broker: Broker, topic: str, count: int) -> None:
    """Increase the number of partitions to ``count``, and wait until all can be written to."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.cimpl import NewPartitions

    from headgate.setup.broker import client, topics

    admin = client.admin(broker.servers)
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(PATIENCE)
    every = [TopicPartition(topic, number) for number in range(count)]
    topics._wait(
        broker.servers, lambda: topics._serves(broker.servers, every), "does not add partitions"
    )


def expire(broker: Broker, topic: str, first: Mapping[int, int]) -> None:
    """Delete the records before an offset of each partition, as retention does."""
    from confluent_kafka import TopicPartition

    from headgate.setup.broker import client

    admin = client.admin(broker.servers)
    wanted = [TopicPartition(topic, number, offset) for number, offset in first.items()]
    for done in admin.delete_records(wanted).values():
        done.result(PATIENCE)


def make_anew(broker: Broker, topic: str, partitions: int = 1) -> None:
    """Delete the topic and create another one with the same name."""
    from headgate.setup.broker import topics

    topics.delete(broker.servers, topic)
    topics.create(broker.servers, topic, partitions)


def consume_all(broker: Broker, topic: str) -> list[ConsumedRecord]:
    """Every committed record, sorted by partition and offset."""
    from headgate.setup.broker.consuming import consume

    return sorted(consume(broker.servers, topic), key=lambda r: (r.partition, r.offset))
