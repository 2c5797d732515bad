"""A pipeline whose brokers ask for TLS and a password: in, and out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.broker import client
from tests.support.broker import consume_all, create_topic, produce
from tests.support.key_store import KeyStore, make_key
from tests.support.own_broker import BrokerWithLogin
from tests.support.shell import Shell
from tests.support.watched import CANARY

pytestmark = pytest.mark.e2e

DECLARATION = """
pipeline: safe
sources:
  readings:
    kafka:
      servers: {servers}
      topic: {topic}
      options:
{options}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, at: timestamp}}
silver:
  clean: {{from: readings}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    measures: {{n: count(*)}}
    allowed_lateness: 10 seconds
publish:
  finals:
    from: gold.per_minute
    kafka:
      servers: {servers}
      topic: {finals}
      options:
{options}
"""


def declare(folder: Path, kafka: BrokerWithLogin, trusted: Path, topic: str, finals: str) -> None:
    (folder / "jaas").write_text(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="ann" password="{CANARY}";'
    )
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "${file:jaas}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    text = "\n".join(f'        {name}: "{value}"' for name, value in options.items())
    (folder / "safe.yml").write_text(
        DECLARATION.format(servers=kafka.tls_servers, topic=topic, finals=finals, options=text)
    )


def test_in_and_out_over_tls(kafka: BrokerWithLogin, key: KeyStore, shell: Shell) -> None:
    topic, finals = create_topic(kafka, 2), create_topic(kafka, 2)
    declare(shell.folder, kafka, key.trusted, topic, finals)
    times = [f"2026-03-01T12:{minute:02d}:00Z" for minute in range(5)]
    produce(kafka, topic, [json.dumps({"id": at, "at": at}).encode() for at in times])
    summary = shell.json("run safe.yml --root lake --once --drain")
    assert (summary["read"], summary["balanced"]) == (5, True)
    found = [json.loads(record.value or b"") for record in consume_all(kafka, finals)]
    starts = sorted(final["window_start"] for final in found)
    assert starts == [at.replace("Z", ".000000Z") for at in times]


def test_brokers_that_are_not_trusted(tmp_path: Path, kafka: BrokerWithLogin, shell: Shell) -> None:
    topic = create_topic(kafka)
    declare(shell.folder, kafka, make_key(tmp_path).trusted, topic, f"{topic}-out")
    code, said = shell("run safe.yml --root other --once")
    assert code == 3, said
    assert "refuse" in said
    assert CANARY not in said
    assert client.partitions(kafka.servers, topic)
