"""What a failed read of topics means, when the brokers answer and no record is lost."""

from __future__ import annotations

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import said_by
from headgate.flow.kafka_errors import kafka_errors
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.errors import BrokersRefuseError, BrokersUnreachableError
from headgate.flow.sources.kafka.outages import NO_ADDRESS, meaning_of


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
