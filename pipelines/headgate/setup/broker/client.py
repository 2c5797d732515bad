"""Connects to a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headgate.setup.broker.errors import UnknownTopicError, UnreachableError

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata

ANSWERS_WITHIN = 10.0  # seconds

Setting = str | int | float | bool


def settings(servers: str, **more: Setting) -> dict[str, Setting]:
    """The settings of every client; in ``more``, underscores stand for dots."""
    return {
        "bootstrap.servers": servers,
        "client.id": "headgate",
        # Errors are raised; the library would also print them.
        "log_level": 0,
        # Reconnect soon to a broker that restarts.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def admin(servers: str, **more: Setting) -> AdminClient:
    """An admin client, which does not connect yet."""
    return AdminClient(settings(servers, **more))


def cluster_id(client: AdminClient, timeout: float) -> str | None:
    """The id of the cluster; None if no broker answers within ``timeout`` seconds."""
    try:
        answer = client.list_topics(timeout=timeout)
    except KafkaException:
        return None
    return answer.cluster_id if answer.brokers else None


def metadata(servers: str, timeout: float = ANSWERS_WITHIN, **more: Setting) -> ClusterMetadata:
    """Brokers and topics. Raises UnreachableError."""
    heard: list[KafkaError] = []

    client = AdminClient({**settings(servers, **more), "error_cb": heard.append})  # type: ignore[dict-item]
    try:
        return client.list_topics(timeout=timeout)
    except KafkaException as error:
        client.poll(0)
        raise UnreachableError(servers, timeout, reason(heard) or error_text(error)) from error


def partitions(servers: str, topic: str, timeout: float = ANSWERS_WITHIN) -> tuple[int, ...]:
    """The partitions of a topic. Raises UnreachableError or UnknownTopicError."""
    topics = metadata(servers, timeout).topics
    if topic not in topics:
        raise UnknownTopicError(servers, topic, topics)
    return tuple(sorted(topics[topic].partitions))


def reason(heard: Sequence[KafkaError]) -> str | None:
    """The last error other than 'all brokers down', which follows every connection error. If there
    is no other, that one; None if there is no error."""
    why = [error for error in heard if error.code() != KafkaError._ALL_BROKERS_DOWN]
    return (why or heard)[-1].str() if heard else None


def error_text(error: KafkaException) -> str:
    """The text of Kafka's error."""
    words = error.args[0] if error.args else error
    return words.str() if isinstance(words, KafkaError) else str(words)
