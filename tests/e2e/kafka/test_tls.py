"""A pipeline that reads and publishes over TLS, with a password."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.setup.broker import client
from tests.support.broker import consume_all, create_topic, produce
from tests.support.key_store import KeyStore, make_key
from tests.support.own_broker import BrokerWithLogin
from tests.support.shell import Shell
from tests.support.watched import CANARY, declare, events

pytestmark = pytest.mark.e2e

OPTIONS = """
      options:
        security.protocol: SASL_SSL
        sasl.mechanism: PLAIN
        sasl.jaas.config: ${{file:jaas}}
        ssl.truststore.type: PEM
        ssl.truststore.location: {trusted}
"""
PUBLISH = """
publish:
  finals:
    from: gold.per_minute
    kafka:
      servers: {servers}
      topic: {topic}
{options}
"""


def declare_safe(
    folder: Path, kafka: BrokerWithLogin, trusted: Path, topic: str, finals: str
) -> None:
    (folder / "jaas").write_text(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="ann" password="{CANARY}";'
    )
    options = OPTIONS.format(trusted=trusted)
    declare(folder, kafka.tls_servers, topic, "safe", options=options)
    with (folder / "safe.yml").open("a") as file:
        file.write(PUBLISH.format(servers=kafka.tls_servers, topic=finals, options=options))


def test_in_and_out_over_tls(kafka: BrokerWithLogin, key: KeyStore, shell: Shell) -> None:
    topic, finals = create_topic(kafka, 2), create_topic(kafka, 2)
    declare_safe(shell.folder, kafka, key.trusted, topic, finals)
    produce(kafka, topic, events(0, 300))  # one a second
    summary = shell.json("run safe.yml --root lake --once --drain")
    assert (summary["read"], summary["balanced"]) == (300, True)
    found = [json.loads(record.value or b"") for record in consume_all(kafka, finals)]
    starts = sorted((final["window_start"], final["events"]) for final in found)
    assert starts == [(f"2026-03-01T12:{minute:02d}:00.000000Z", 60) for minute in range(5)]


def test_brokers_that_are_not_trusted(tmp_path: Path, kafka: BrokerWithLogin, shell: Shell) -> None:
    topic = create_topic(kafka)
    declare_safe(shell.folder, kafka, make_key(tmp_path).trusted, topic, f"{topic}-out")
    code, said = shell("run safe.yml --root other --once")
    assert code == 3, said
    assert "refuse" in said
    assert CANARY not in said
    assert client.partitions(kafka.servers, topic)
