"""What a failed read of topics means, when the brokers answer and no record is lost."""

from __future__ import annotations

import re

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import said_by
from headgate.sinks.kafka.causes import kafka_errors
from headgate.sources.errors import SourceError
from headgate.sources.kafka.declared import KafkaSource
from headgate.sources.kafka.errors import BrokersRefuseError

_REFUSED = re.compile("Authorization|Authentication")
_LASTING = re.compile("CorruptRecord|InvalidTopic|RecordTooLarge|Unsupported")


def read_failure(error: Exception, source: KafkaSource) -> SourceError | None:
    """The error for the user; None if no class of Kafka's errors is a cause of ``error``. Unless
    the cause is known to last, a driver is started again after the exit code."""
    names = kafka_errors(said := said_by(error))
    if not names or "OutOfMemoryError" in said:
        return None
    topic = source.topic or f"topics like {source.pattern}"
    causes = ", ".join(names)
    if any(map(_REFUSED.search, names)):
        return BrokersRefuseError(
            f"the brokers {source.servers} do not let this user read {topic} ({causes})",
            remedy="grant this user READ and DESCRIBE on each topic, and READ on the consumer "
            "group (kafka-acls), or correct the options in the declaration; then start again: "
            + pipeline_command("start"),
        )
    lasts = any(map(_LASTING.search, names))
    return SourceError(
        f"the brokers {source.servers} answer, but {topic} cannot be read ({causes})",
        remedy=f"see what Spark said: {pipeline_command('logs', '--spark')}\n"
        f"then start again: {pipeline_command('start')}",
        code=None if lasts else exit_codes.NOT_ALIVE,
    )
