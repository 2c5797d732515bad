"""Lists, creates and deletes the topics of a broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec  # type: ignore[attr-defined]

from headgate.setup.broker import client
from headgate.setup.broker.client import ANSWERS_WITHIN, NoSuchTopicError, TopicError

_POLL_EVERY = 0.05  # seconds


@dataclass(frozen=True)
class Partition:
    """Offsets from ``earliest`` to ``latest``, exclusive; both None while it has no leader."""

    topic: str
    partition: int
    earliest: int | None
    latest: int | None


def listing(servers: str, *, internal: bool = False) -> tuple[Partition, ...]:
    """All partitions, by topic and number. ``internal`` includes those of Kafka's own topics.

    Raises UnreachableError.
    """
    topics = client.metadata(servers).topics
    found = [
        TopicPartition(topic, number)
        for topic in sorted(topics)
        for number in sorted(topics[topic].partitions)
        if internal or not topic.startswith("__")
    ]
    earliest = _offsets(servers, found, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    latest = _offsets(servers, found, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return tuple(
        Partition(p.topic, p.partition, first, last)
        for p, first, last in zip(found, earliest, latest, strict=True)
    )


def create(
    servers: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create a topic with one replica and wait until it can be written to.

    Raises UnreachableError or TopicError.
    """
    client.metadata(servers)
    new = NewTopic(name, partitions, 1, config=dict(config or {}))
    admin = client.admin(servers)  # kept in a variable: its futures end with it
    _done(servers, admin.create_topics([new])[name], f"does not make a topic {name}")
    every = [TopicPartition(name, number) for number in range(partitions)]
    _wait(servers, lambda: _serves(servers, every), f"does not give {name} its partitions")


def delete(servers: str, name: str) -> None:
    """Delete a topic with all its records, and wait until it is no longer listed.

    Raises UnreachableError, NoSuchTopicError or TopicError.
    """
    known = client.metadata(servers).topics
    if name not in known:
        raise NoSuchTopicError(servers, name, known)
    admin = client.admin(servers)
    _done(servers, admin.delete_topics([name])[name], f"does not remove the topic {name}")
    _wait(servers, lambda: name not in client.metadata(servers).topics, f"does not remove {name}")


def _done(servers: str, asked: Future[None], otherwise: str) -> None:
    try:
        asked.result(ANSWERS_WITHIN)
    except KafkaException as error:
        raise TopicError(servers, f"{otherwise}: {client.error_text(error)}") from error


def _offsets(servers: str, found: list[TopicPartition], spec: OffsetSpec) -> list[int | None]:
    if not found:
        return []
    admin = client.admin(servers)
    answers = admin.list_offsets(dict.fromkeys(found, spec))
    offsets: list[int | None] = []
    for partition in found:
        try:
            offsets.append(int(answers[partition].result(ANSWERS_WITHIN).offset))
        except KafkaException:
            offsets.append(None)
    return offsets


def _serves(servers: str, every: list[TopicPartition]) -> bool:
    """Whether every leader answers. A leader appears in the metadata before it answers."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    return None not in _offsets(servers, every, latest)


def _wait(servers: str, condition: Callable[[], bool], otherwise: str) -> None:
    """Wait until clients see a change that the broker has acknowledged."""
    deadline = time.monotonic() + ANSWERS_WITHIN
    while not condition():
        if time.monotonic() > deadline:
            raise TopicError(servers, f"{otherwise} within {ANSWERS_WITHIN:.0f} s")
        time.sleep(_POLL_EVERY)
