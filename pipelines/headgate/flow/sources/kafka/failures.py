"""What errors of Kafka mean for a source."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import said_by
from headgate.flow.kafka_errors import kafka_errors
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import TopicPartition


class BrokersUnreachableError(SourceUnreachableError):
    """No broker answers."""


class BrokersRefuseError(SourceError):
    """The brokers refuse the request because of credentials, rights or a client property."""


class TopicMissingError(SourceError):
    """The topic does not exist."""


class OffsetsLostError(SourceError):
    """Unread records are lost. A person must decide."""


Meaning = Literal["refused", "lasting", "away", "unknown"]
"""``refused``: the brokers refuse this user; ``lasting``: the topic or a record cannot be read, and
a retry does not help; ``away``: brokers do not answer, or are not ready: an outage; ``unknown``:
anything else."""

_REFUSED = re.compile("Authorization|Authentication|IllegalSaslState|UnsupportedSasl")
_LASTING = re.compile("CorruptRecord|InvalidTopic|RecordTooLarge|RecordBatchTooLarge|Unsupported")
_AWAY = re.compile(
    "Timeout|Disconnect|Network|NotAvailable|NotLeader|NotCoordinator|NotController|LoadInProgress"
    "|LeaderEpoch|FetchSession|KafkaStorage|Election|Throttling|StaleBrokerEpoch|NotEnoughReplicas"
    "|BootstrapResolution|Retriable|UnknownServer|UnknownTopic|InconsistentTopicId"
)


NO_ADDRESS = "No resolvable bootstrap urls"
"""The message of an error of Kafka whose class says nothing: no name of a host was resolved."""


def meaning_of(names: Collection[str], *, is_retriable: bool = False) -> Meaning:
    """The meaning of an error whose causes have these ``names``. ``is_retriable``: one of them is a
    RetriableException. A refusal counts more than a missing answer: brokers that refuse a login end
    the connection, too."""
    for meaning, pattern in (("refused", _REFUSED), ("lasting", _LASTING), ("away", _AWAY)):
        if any(map(pattern.search, names)):
            return meaning  # type: ignore[return-value]
    return "away" if is_retriable else "unknown"


def read_failure(error: Exception, source: KafkaSource) -> SourceError | None:
    """The error for the user; None if no class of Kafka's errors is a cause of ``error``. Unless
    the cause is known to last, the topic is read again, by this driver or by the next one."""
    names = kafka_errors(said := said_by(error))
    if not names or "OutOfMemoryError" in said:
        return None
    topic = source.topic or f"topics like {source.pattern}"
    causes = ", ".join(names)
    meaning = "away" if NO_ADDRESS in said else meaning_of(names)
    if meaning == "refused":
        return BrokersRefuseError(
            f"the brokers {source.servers} do not let this user read {topic} ({causes})",
            remedy="grant this user READ and DESCRIBE on each topic, and READ on the consumer "
            "group (kafka-acls), or correct the options in the declaration; then start again: "
            + pipeline_command("start"),
        )
    message = f"the brokers {source.servers} answer, but {topic} cannot be read ({causes})"
    remedy = f"see what Spark said: {pipeline_command('logs', '--spark')}"
    if meaning == "away":
        return BrokersUnreachableError(message, remedy)
    return SourceError(
        message,
        remedy=f"{remedy}\nthen start again: {pipeline_command('start')}",
        code=None if meaning == "lasting" else exit_codes.NOT_ALIVE,
    )


_OVERFLOW = re.compile(r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value")


def readable_before(
    error: Exception, partitions: Mapping[int, TopicPartition], position: Offsets
) -> dict[int, int]:
    """Where the next batch must end because Spark cannot read a record, as its timestamp is too
    large, such as nanoseconds in place of milliseconds: the records before it are read first.

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
