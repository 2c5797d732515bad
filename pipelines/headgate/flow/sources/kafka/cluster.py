"""Queries brokers for topics and offsets with Kafka's admin client in Spark's JVM.

It has the same client properties as Spark's reader, so security is configured in one way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate.commands import shell_command
from headgate.declaration.names import did_you_mean
from headgate.declaration.secrets import secrets_in, without
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.failures import (
    NO_ADDRESS,
    BrokersRefuseError,
    BrokersUnreachableError,
    TopicMissingError,
    meaning_of,
)
from headgate.flow.sources.kafka.topics import Topic, TopicPartition
from headgate.machine.jvm import java

_TIMEOUT = 10_000  # milliseconds for one request: the caller decides whether to retry

_CHECK_EVERY = 250  # milliseconds
_STILL_ASKING = "java.util.concurrent.TimeoutException"
_NO_NODE = "Timed out waiting for a node assignment"
_CLOSED = "AdminClient is closing"
"""In the message of a request to a client that another thread has closed after an outage."""

At = Literal["earliest", "latest"] | datetime


class Cluster:
    """The brokers of one source. Every method raises BrokersUnreachableError, or
    BrokersRefuseError if a retry would not help. While one waits for an answer, it calls ``check``
    repeatedly, which may raise."""

    def __init__(
        self, spark: SparkSession, source: KafkaSource, check: Callable[[], None] = lambda: None
    ) -> None:
        self._java = java(spark)
        self._source = source
        self._check = check
        self._client: Any = None

    def topics(self) -> tuple[Topic, ...]:
        """The topics of the source, by name. Raises TopicMissingError if there is none."""
        wanted = self._wanted()
        described = self._ask("describeTopics", self._set(wanted), "DescribeTopics")
        found = self._answer(described.allTopicNames())
        return tuple(
            Topic(name, str(found[name].topicId().toString()), int(found[name].partitions().size()))
            for name in sorted(found)
        )

    def offsets(self, partitions: Collection[TopicPartition], at: At) -> dict[int, int]:
        """For each partition (by number) its first offset, the end of its readable records, or the
        first offset at or after a moment; the end if there is no such record."""
        if not partitions:
            return {}
        found = self._list_offsets(partitions, at)
        none = [p for p in partitions if found[p.number] < 0]
        return found | self.offsets(none, "latest")

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            # Not after the requests that wait for an answer.
            client.close(self._java.java.time.Duration.ZERO)

    def _wanted(self) -> list[str]:
        if self._source.topic is not None:
            return [self._source.topic]
        pattern = re.compile(self._source.pattern or "")
        there = self._names()
        names = [name for name in there if pattern.fullmatch(name)]
        if not names:
            raise TopicMissingError(
                f"no topic of {self._source.servers} matches {pattern.pattern}",
                remedy=_listed(there),
            )
        return names

    def _names(self) -> list[str]:
        listed = self._ask("listTopics", None, "ListTopics")
        return sorted(str(name) for name in self._answer(listed.names()))

    def _unknown(self, topic: str) -> TopicMissingError:
        names = self._names()
        hint = did_you_mean(topic, names)
        message = f"{self._source.servers} has no topic {topic}{hint}"
        return TopicMissingError(message, remedy=_listed(names))

    def _listener_hint(self) -> str:
        """A remedy: how to find out why no broker answers."""
        servers = self._source.servers
        if "security.protocol" in self._source.options:
            return f"see whether brokers listen at {servers}, and speak this security.protocol"
        topics = shell_command("kafka topics", "--servers", servers)
        return (
            f"see whether a broker listens there: {topics}; "
            "a broker that requires a password or TLS answers only with security.protocol in "
            "options"
        )

    def _list_offsets(self, partitions: Iterable[TopicPartition], at: At) -> dict[int, int]:
        specs = self._java.java.util.HashMap()
        keys = {}
        for p in partitions:
            key = self._java.org.apache.kafka.common.TopicPartition(p.topic, p.partition)
            keys[p.number] = key
            specs.put(key, self._spec(at))
        level = getattr(
            self._java.org.apache.kafka.common.IsolationLevel, self._source.isolation.upper()
        )
        options = self._class("ListOffsetsOptions")(level)
        options.timeoutMs(self._java.java.lang.Integer(_TIMEOUT))
        found = self._answer(self._call("listOffsets", specs, options).all())
        return {number: int(found[key].offset()) for number, key in keys.items()}

    def _spec(self, at: At) -> Any:
        spec = self._class("OffsetSpec")
        if isinstance(at, datetime):
            return spec.forTimestamp(int(at.timestamp() * 1000))
        return spec.earliest() if at == "earliest" else spec.latest()

    def _class(self, name: str) -> Any:
        return getattr(self._java.org.apache.kafka.clients.admin, name)

    def _set(self, names: Iterable[str]) -> Any:
        found = self._java.java.util.HashSet()
        for name in names:
            found.add(name)
        return found

    def _ask(self, method: str, argument: Any, options: str) -> Any:
        chosen = self._class(f"{options}Options")()
        chosen.timeoutMs(self._java.java.lang.Integer(_TIMEOUT))
        arguments = [chosen] if argument is None else [argument, chosen]
        return self._call(method, *arguments)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            # The other thread may close the client meanwhile, because it had no answer.
            if (client := self._client) is None:
                client = self._client = self._class("Admin").create(self._properties())
            return getattr(client, method)(*arguments)
        except Py4JJavaError as error:
            raise self._meaning(error) from None

    def _answer(self, future: Any) -> Any:
        milliseconds = self._java.java.util.concurrent.TimeUnit.MILLISECONDS
        while True:
            try:
                return future.get(_CHECK_EVERY, milliseconds)
            except Py4JJavaError as error:
                if error.java_exception.getClass().getName() != _STILL_ASKING:
                    raise self._meaning(error) from None
            self._check()

    def _properties(self) -> Any:
        properties = self._java.java.util.Properties()
        for name, value in client_properties(self._source).items():
            properties.put(name, value)
        properties.put("default.api.timeout.ms", str(_TIMEOUT))
        properties.put("request.timeout.ms", str(_TIMEOUT // 2))
        return properties

    def _meaning(self, error: Py4JJavaError) -> Exception:
        """The error for the user. Causes are not chained, because they may show secrets."""
        names, message, retriable = self._causes(error)
        servers, topic = self._source.servers, self._source.topic
        if "UnknownTopicOrPartitionException" in names and topic and topic not in self._names():
            return self._unknown(topic)
        if NO_ADDRESS in message:
            return BrokersUnreachableError(
                f"no host of {servers} has an address",
                remedy="see whether names of hosts are resolved here, or correct servers in the "
                "declaration",
            )
        if meaning_of(names, is_retriable=retriable) == "away" or _CLOSED in message:
            # The next request connects anew: addresses may be others by then.
            self.close()
            why = "" if _NO_NODE in message else f": {message.partition(' Call: ')[0]}"
            return BrokersUnreachableError(
                f"no answer from the brokers {servers}{why}", remedy=self._listener_hint()
            )
        return BrokersRefuseError(
            f"the brokers {servers} refuse: {message}",
            remedy="look at servers and options in the declaration: user, password, "
            "security.protocol, and what this user may do",
        )

    def _causes(self, error: Py4JJavaError) -> tuple[set[str], str, bool]:
        """The names of the exceptions, the innermost message, and whether one is retriable."""
        names, message, retriable = set(), "", False
        cause = error.java_exception
        while cause is not None:
            names.add(str(cause.getClass().getSimpleName()))
            retriable |= _is_retriable(cause)
            message = str(cause.getMessage() or cause.getClass().getSimpleName())
            cause = cause.getCause()
        return names, without(secrets_in(self._source.options), message), retriable


def _listed(names: Sequence[str]) -> str:
    there = some_of(names) or "none"
    return f"correct the topic in the declaration, or create it first; there are: {there}"


def _is_retriable(cause: Any) -> bool:
    # Classes are compared by name: Class.forName searches Spark's own jars, not the added ones.
    kind = cause.getClass()
    while kind is not None:
        if kind.getName() == "org.apache.kafka.common.errors.RetriableException":
            return True
        kind = kind.getSuperclass()
    return False


def client_properties(source: KafkaSource) -> Mapping[str, str]:
    """The Kafka client properties of a source. They contain secrets and must never be shown."""
    return {**source.options, "bootstrap.servers": source.servers}
