"""Connects to a broker. Its errors have a remedy each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.names import did_you_mean
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from confluent_kafka.admin._metadata import ClusterMetadata


HEAP_MB = 512


class BrokerError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """The development broker did not start, or did not stop."""


class FolderError(BrokerError, code=exit_codes.MACHINE):
    """The broker's folder cannot be used."""


class FolderInUseError(BrokerError, code=exit_codes.LEASE_HELD):
    """``pid`` is that of the broker's JVM, or of its guard."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        self.pid = pid
        named = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{folder} is in use: {named} runs a broker on it",
            f"End that one, or choose another --root: {shell_command('kafka down')}",
        )


class PortTakenError(BrokerError):
    def __init__(self, port: int, reason: str = "another process listens there") -> None:
        self.port = port
        super().__init__(
            f"port {port} of 127.0.0.1 cannot be used: {reason}",
            "Choose another port, or let one be chosen: "
            + shell_command("kafka up", "--port", "0"),
        )


class NotEnoughMemoryError(BrokerError, code=exit_codes.MACHINE):
    def __init__(self, output: Sequence[str]) -> None:
        super().__init__(
            f"the broker's JVM did not get its memory (a heap of {HEAP_MB} MB, and about as much "
            f"beside it). Its last output:\n{indented(output)}",
            "End other programs, or give the machine or the container more memory",
        )


class NotUpError(BrokerError):
    def __init__(self, how: str, output: Sequence[str], logs: Path) -> None:
        super().__init__(
            f"the broker {how}. Its last output:\n{indented(output)}", f"Look into its logs: {logs}"
        )


class ClientError(HeadgateError):
    """A broker did not do what a client asked for."""


class BrokerUnreachableError(ClientError, code=exit_codes.SOURCE):
    def __init__(self, servers: str, seconds: float, reason: str | None) -> None:
        super().__init__(
            f"no Kafka broker answered at {servers} within {seconds:.0f} s"
            + (f": {reason}" if reason else ""),
            f"Start one here: {shell_command('kafka up')}   (or name one with --servers)",
        )


class NoSuchTopicError(ClientError):
    def __init__(self, servers: str, topic: str, known: Iterable[str]) -> None:
        at = "--servers", servers
        super().__init__(
            f"{servers} has no topic {topic}{did_you_mean(topic, known)}",
            f"{shell_command('kafka topics', *at)}, or make it: "
            + shell_command("kafka topics", "--create", topic, *at),
        )


class TopicError(ClientError):
    """A topic could not be created or deleted."""

    def __init__(self, servers: str, reason: str) -> None:
        super().__init__(
            f"{servers} {reason}",
            f"List the topics: {shell_command('kafka topics', '--servers', servers)}",
        )


class NotDeliveredError(ClientError):
    """Some records are not in the topic; ``delivered`` counts those that are, per partition."""

    def __init__(self, topic: str, delivered: dict[int, int], failed: int, reason: str) -> None:
        self.delivered = delivered
        super().__init__(
            f"{topic}: {sum(delivered.values())} records were delivered, then {failed} were not: "
            f"{reason}",
            "The delivered records stay in the topic; correct the cause, then send the others "
            "again",
        )


def indented(lines: Sequence[str]) -> str:
    return "\n".join(f"  {line}" for line in lines) or "  nothing"


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
    """Brokers and topics. Raises BrokerUnreachableError."""
    heard: list[KafkaError] = []

    client = AdminClient({**settings(servers, **more), "error_cb": heard.append})  # type: ignore[dict-item]
    try:
        return client.list_topics(timeout=timeout)
    except KafkaException as error:
        client.poll(0)
        raise BrokerUnreachableError(
            servers, timeout, reason(heard) or error_text(error)
        ) from error


def partitions(servers: str, topic: str, timeout: float = ANSWERS_WITHIN) -> tuple[int, ...]:
    """The partitions of a topic. Raises BrokerUnreachableError or NoSuchTopicError."""
    topics = metadata(servers, timeout).topics
    if topic not in topics:
        raise NoSuchTopicError(servers, topic, topics)
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
