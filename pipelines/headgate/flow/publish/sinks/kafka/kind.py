"""The sink that writes to a topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.declaration.contracts.sink import Sink
from headgate.declaration.kafka.section import (
    KafkaSink,
    dataset,
    option_lines,
    options_of,
    written_of,
)
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.declaration.secrets import secrets_in
from headgate.flow.publish.sinks.kafka.keys import KAFKA
from headgate.flow.publish.sinks.writers import SinkContext, Writer


class KafkaSinkKind(Sink[KafkaSink]):
    key = KAFKA
    place = "topic"
    needs_jars = True
    accepts = "the brokers take it"
    check_hint = "see whether they listen and the topic is there"

    def build(self, section: Section, report: ProblemReport) -> KafkaSink | None:
        servers, topic = section.get("servers"), section.get("topic")
        if servers is None or topic is None:
            return None
        return KafkaSink(servers.text, topic.text, options_of(section), written_of(section))

    def plan(self, sink: KafkaSink) -> dict[str, Any]:
        places = {"servers": sink.servers, "topic": sink.topic}
        return {**places, **sink.written, "options": sorted(sink.options)}

    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        where = f"  kafka    topic {planned['topic']} at {planned['servers']}"
        return where, *option_lines(planned)

    def secrets(self, sink: KafkaSink) -> Iterable[str]:
        return secrets_in(sink.options)

    def datasets(self, sink: KafkaSink) -> Iterable[tuple[str, str]]:
        return (dataset(sink.servers, sink.topic),)

    def writer(self, sink: KafkaSink, context: SinkContext) -> Writer:
        from headgate.flow.publish.sinks.kafka.writer import KafkaWriter

        return KafkaWriter(sink)
