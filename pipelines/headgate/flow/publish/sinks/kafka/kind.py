"""The sink that writes to a topic, and the keys of the section ``kafka`` of a publication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.declaration.contracts.sink import Sink
from headgate.declaration.kafka.section import (
    NO_INTERCEPTORS,
    OPTIONS,
    SERVERS,
    KafkaSink,
    dataset,
    option_lines,
    options_of,
    written_of,
)
from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.declaration.secrets import secrets_in
from headgate.flow.publish.sinks.writers import SinkContext, Writer

_READS_NOTHING = "a publication reads nothing"
_PROMISE = "the delivery guarantee depends on it"
_REFUSED = {
    "bootstrap.servers": "use the key servers",
    "group.id": _READS_NOTHING,
    "auto.offset.reset": _READS_NOTHING,
    "enable.auto.commit": _READS_NOTHING,
    "isolation.level": _READS_NOTHING,
    "key.deserializer": _READS_NOTHING,
    "value.deserializer": _READS_NOTHING,
    "interceptor.classes": NO_INTERCEPTORS,
    "key.serializer": "the bytes of keys are made by Headgate",
    "value.serializer": "the bytes of values are made by Headgate",
    "transactional.id": _PROMISE,
    "acks": _PROMISE,
    "enable.idempotence": _PROMISE,
}

KAFKA = Key(
    "kafka",
    "section",
    "The target topic.",
    children=(
        SERVERS,
        Key("topic", "topic", "The name of the topic.", required=True, deployment=True),
        Key("options", "options", OPTIONS, refused=_REFUSED),
    ),
)


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
