"""Sends messages to a topic with Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headgate.declaration.kafka.section import KafkaSink
from headgate.flow.kafka_errors import kafka_errors
from headgate.flow.publish.sinks.writers import Outgoing, Writer

# An unreachable broker must not delay gold for minutes: rows are sent again later.
_PRODUCER = {
    "acks": "all",
    "enable.idempotence": "true",
    "max.block.ms": "10000",
    "request.timeout.ms": "10000",
}
_DELIVERY = 20_000  # milliseconds
_KAFKAS = "org.apache.kafka."


class KafkaWriter(Writer):
    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self._options = {
            **{f"kafka.{name}": value for name, value in producer_options(sink.options).items()},
            "kafka.bootstrap.servers": sink.servers,
            "topic": sink.topic,
            "includeHeaders": "true",
        }

    def send(self, outgoing: Outgoing) -> bool:
        outgoing.messages.write.format("kafka").options(**self._options).save()
        return True

    def failure(self, error: Exception) -> str | None:
        """Omits Spark's message, which may show the client's properties and secrets. The names of
        Kafka's errors are sufficient. An error without a class of Kafka in its text has another
        cause, such as a damaged file of the table, which is read in the same call."""
        if not isinstance(error, PySparkException | Py4JError) or _KAFKAS not in str(error):
            return None
        servers = self._sink.written.get("servers", self._sink.servers)
        causes = ", ".join(kafka_errors(str(error)))
        message = f"{servers} does not take records for {self._sink.topic}"
        return f"{message} ({causes})" if causes else message


def producer_options(declared: Mapping[str, str]) -> dict[str, str]:
    """The options of the producer. Kafka refuses a delivery timeout that is shorter than one
    request and ``linger.ms``, so it grows with them, unless it is declared."""
    options = {**_PRODUCER, **declared}
    times = [options["request.timeout.ms"], options.get("linger.ms", "0")]
    if all(each.isdecimal() for each in times):
        request, linger = map(int, times)
        options.setdefault("delivery.timeout.ms", str(max(_DELIVERY, 2 * request + linger)))
    return options
