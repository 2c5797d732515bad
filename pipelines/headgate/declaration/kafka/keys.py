"""The keys that sources and publications of Kafka share, and those of publications."""

from __future__ import annotations

from headgate.declaration.keys.key import Key

SERVERS = Key(
    "servers",
    "servers",
    "Bootstrap brokers: `host:port`, several separated by commas.",
    required=True,
    deployment=True,
)
OPTIONS = (
    "Client properties with the names of Kafka's Java client, such as `security.protocol`. A "
    "password or another secret must be a placeholder."
)
NO_INTERCEPTORS = "nothing may come between a record and its row"
_REFUSED_WRITING = {
    "bootstrap.servers": "use the key servers",
    "group.id": "a publication reads nothing",
    "auto.offset.reset": "a publication reads nothing",
    "enable.auto.commit": "a publication reads nothing",
    "isolation.level": "a publication reads nothing",
    "key.deserializer": "a publication reads nothing",
    "value.deserializer": "a publication reads nothing",
    "interceptor.classes": NO_INTERCEPTORS,
    "key.serializer": "the bytes of keys are made by Headgate",
    "value.serializer": "the bytes of values are made by Headgate",
    "transactional.id": "what a publication promises rests on it",
    "acks": "what a publication promises rests on it",
    "enable.idempotence": "what a publication promises rests on it",
}

PUBLICATION = Key(
    "NAME",
    "section",
    "The rows of one table, sent to a topic.",
    children=(
        Key(
            "from",
            "text",
            "The table: `gold.TABLE`, `late.TABLE` (TABLE is a gold table) or `quarantine.SOURCE`.",
            required=True,
        ),
        Key(
            "when",
            "choice",
            "For gold only: send a row when its window is `final`, or on each `update`, including "
            "open windows.",
            default="final",
            choices=("final", "update"),
        ),
        Key(
            "kafka",
            "section",
            "The target topic.",
            required=True,
            children=(
                SERVERS,
                Key("topic", "topic", "The name of the topic.", required=True, deployment=True),
                Key("options", "options", OPTIONS, refused=_REFUSED_WRITING),
            ),
        ),
    ),
)
