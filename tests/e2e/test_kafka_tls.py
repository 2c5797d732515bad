"""A pipeline whose brokers ask for TLS and a password: in, and out again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.broker import client, topics
from headgate.jars import java
from tests.support.broker import consume_all, produce
from tests.support.own_broker import BrokerWithLogin, start_with_login
from tests.support.shell import Shell

pytestmark = pytest.mark.e2e

PASSWORD = "correct-horse-battery"
STORE = "of-the-key-store"
DECLARATION = """
pipeline: safe
sources:
  readings:
    kafka:
      servers: ${{env:SAFE_SERVERS}}
      topic: readings
      options: &safe
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
      servers: ${{env:SAFE_SERVERS}}
      topic: finals
      options:
{options}
"""


def keytool(*arguments: str) -> None:
    tool = (java.executable() or Path("java")).resolve().with_name("keytool")
    subprocess.run([str(tool), *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the broker's key store and, as PEM, what to trust it by."""
    folder = tmp_path_factory.mktemp("tls")
    store = ("-keystore", str(folder / "broker.p12"), "-storepass", STORE, "-alias", "broker")
    name = ("-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1,dns:localhost")
    kind = ("-storetype", "PKCS12", "-keyalg", "RSA", "-validity", "2")
    keytool("-genkeypair", *store, *kind, *name)
    keytool("-exportcert", *store, "-rfc", "-file", str(folder / "trusted.pem"))
    return folder


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, certificate: Path
) -> Iterator[BrokerWithLogin]:
    """One that listens for SASL over TLS, and in plain for the test itself."""
    tls = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL",
        "listener.name.sasl.ssl.keystore.type": "PKCS12",
        "listener.name.sasl.ssl.keystore.location": str(certificate / "broker.p12"),
        "listener.name.sasl.ssl.keystore.password": STORE,
    }
    folder = tmp_path_factory.mktemp("kafka")
    with start_with_login(folder, {"headgate": PASSWORD}, tls) as started:
        for topic in ("readings", "finals"):
            topics.create(started.servers, topic, 2)
        yield started


def declare(folder: Path, trusted: Path) -> None:
    (folder / "jaas").write_text(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="headgate" password="{PASSWORD}";'
    )
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "${file:jaas}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    text = "\n".join(f'        {name}: "{value}"' for name, value in options.items())
    text = DECLARATION.format(options=text).replace(" &safe", "\n" + text)
    (folder / "safe.yml").write_text(text)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, broker: BrokerWithLogin) -> Iterator[Shell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAFE_SERVERS", broker.sasl_servers)
        started = Shell(tmp_path_factory.mktemp("shell"))
    yield started
    started.end()


def test_in_and_out_over_tls(broker: BrokerWithLogin, certificate: Path, shell: Shell) -> None:
    declare(shell.folder, certificate / "trusted.pem")
    times = [f"2026-03-01T12:{minute:02d}:00Z" for minute in range(5)]
    produce(broker, "readings", [json.dumps({"id": at, "at": at}).encode() for at in times])
    summary = shell.json("run safe.yml --root lake --once --drain")
    assert (summary["read"], summary["balanced"]) == (5, True)
    finals = [json.loads(record.value or b"") for record in consume_all(broker, "finals")]
    starts = sorted(final["window_start"] for final in finals)
    assert starts == [at.replace("Z", ".000000Z") for at in times]


def test_brokers_that_are_not_trusted(
    tmp_path: Path, broker: BrokerWithLogin, shell: Shell
) -> None:
    store = ("-keystore", str(tmp_path / "other.p12"), "-storepass", STORE, "-alias", "other")
    keytool("-genkeypair", *store, "-storetype", "PKCS12", "-keyalg", "RSA", "-dname", "CN=other")
    keytool("-exportcert", *store, "-rfc", "-file", str(tmp_path / "other.pem"))
    declare(shell.folder, tmp_path / "other.pem")
    code, said = shell("run safe.yml --root other --once")
    assert code == 3, said
    assert "refuse" in said
    assert PASSWORD not in said
    assert client.partitions(broker.servers, "readings")
