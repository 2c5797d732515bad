"""The keys of the section ``kafka`` of a publication."""

from __future__ import annotations

from headgate.declaration.kafka.section import NO_INTERCEPTORS, OPTIONS, SERVERS
from headgate.declaration.keys.key import Key

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
