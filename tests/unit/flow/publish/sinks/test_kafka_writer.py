"""The options of the producer, and messages about its errors, without a broker."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyspark.errors import PySparkException

from headgate.declaration.kafka.section import KafkaSink
from headgate.flow.publish.sinks.kafka.writer import KafkaWriter, producer_options

JAVA = """Job aborted due to stage failure: {first}
    at org.apache.kafka.clients.producer.KafkaProducer.<init>(KafkaProducer.java:439)
Caused by: {cause}: its message, with hunter22
"""


@pytest.mark.parametrize(
    ("cause", "named"),
    [
        ("org.apache.kafka.common.config.ConfigException", "ConfigException"),
        ("org.apache.kafka.common.errors.TimeoutException", "TimeoutException"),
    ],
)
def test_the_cause_is_named_and_nothing_else_is_shown(cause: str, named: str) -> None:
    first = "org.apache.kafka.common.KafkaException: Failed to construct kafka producer"
    error = PySparkException(JAVA.format(first=first, cause=cause))
    said = KafkaWriter(KafkaSink("localhost:1", "out")).failure(error)
    assert said == f"localhost:1 does not take records for out ({named})"


@pytest.mark.parametrize(
    ("declared", "delivery"),
    [
        ({}, "20000"),
        ({"request.timeout.ms": "1000"}, "20000"),
        ({"request.timeout.ms": "30000"}, "60000"),
        ({"linger.ms": "15000"}, "35000"),
        ({"request.timeout.ms": "30000", "delivery.timeout.ms": "31000"}, "31000"),
        ({"request.timeout.ms": "half a minute"}, None),
    ],
)
def test_a_request_has_the_time_that_is_declared(
    declared: Mapping[str, str], delivery: str | None
) -> None:
    """Kafka refuses a delivery timeout that is shorter than a request and ``linger.ms``."""
    options = producer_options(declared)
    assert options.get("delivery.timeout.ms") == delivery
    assert {name: options[name] for name in declared} == declared
    assert options["acks"] == "all"
