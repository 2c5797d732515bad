"""Sends lines to a topic."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate import exit_codes
from headgate.declaration.names import did_you_mean
from headgate.errors import HeadgateError
from headgate.setup.broker import client
from headgate.setup.broker.client import NotDeliveredError

_SENT_WITHIN_MS = 30_000


class LineError(HeadgateError, code=exit_codes.USAGE):
    """A line does not have the requested key."""


def records(
    lines: BinaryIO, key: str | None, name: str, again: str
) -> Iterator[tuple[bytes | None, bytes]]:
    """(key, value) of each line that is not blank. The value is the line without its line end. The
    key is the top-level field ``key``: a text as it is, any other value as JSON, None if null.

    Raises LineError, which names the line of ``name``, if there is no such field. ``again`` is the
    command that sends the lines of its stdin in the same way.
    """
    for number, line in enumerate(lines, 1):
        value = line.removesuffix(b"\n").removesuffix(b"\r")
        if not value.strip():
            continue
        try:
            found = None if key is None else _key(value, key)
        except ValueError as error:
            # Without a key, a repeated record could go to another partition, where it is not found
            # as a duplicate.
            raise LineError(
                f"{name}, line {number}: {error}, so the line has no key; only the lines before "
                "it are in the topic",
                "Correct the line, and send it and those after it alone, with the same key:\n"
                f"tail -n +{number} {shlex.quote(name)} | {again}",
            ) from error
        yield found, value


def _key(value: bytes, field: str) -> bytes | None:
    """The key of a line; None if it is null. Raises ValueError if there is no such field."""
    try:
        document: Any = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")
    if field not in document:
        raise ValueError(f"has no field {field}{did_you_mean(field, document)}")
    found = document[field]
    if found is None:
        return None
    text = found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def produce(servers: str, topic: str, sent: Iterable[tuple[bytes | None, bytes]]) -> dict[int, int]:
    """Send records, wait until each is acknowledged (acks=all), and count them per partition.

    Keys choose partitions as in Java's producer. An error of ``sent`` is raised after the records
    before it were delivered; a LineError only if they were, because it says so. Raises
    UnreachableError, UnknownTopicError or NotDeliveredError.
    """
    client.partitions(servers, topic)
    producer = Producer(
        client.settings(
            servers,
            acks="all",
            enable_idempotence=True,
            partitioner="murmur2_random",
            linger_ms=5,
            message_timeout_ms=_SENT_WITHIN_MS,
        )
    )
    delivered: Counter[int] = Counter()
    refused: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error.str())
        else:
            delivered[message.partition() or 0] += 1

    try:
        for key, value in sent:
            try:
                _send(producer, topic, key, value, on_delivery)
            except KafkaException as error:  # such as a record that is too large
                refused.append(client.error_text(error))
            if refused:
                break
    except LineError as error:
        producer.flush()
        if refused:
            raise NotDeliveredError(topic, dict(delivered), len(refused), refused[0]) from error
        raise
    finally:
        producer.flush()
    if refused:
        raise NotDeliveredError(topic, dict(delivered), len(refused), refused[0])
    return dict(sorted(delivered.items()))


def _send(
    producer: Producer, topic: str, key: bytes | None, value: bytes, on_delivery: Any
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=on_delivery)
        except BufferError:  # its queue is full: wait until something was delivered
            producer.poll(0.5)
        else:
            producer.poll(0)
            return
