"""A secret is in no error, repr, plan or schema, and no digest depends on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError, DeclarationProblem
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe, plan
from headgate.declaration.reference.schema import json_text
from tests.support.declared import kafka_of
from tests.unit.declaration.test_kafka import CLIENT, START

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

CANARY = "hunter2"
SECRETS = """        sasl.jaas.config: ${file:jaas}
        ssl.key.password: ${env:CANARY}
        client.id: of-${env:CANARY}
"""


@pytest.fixture(autouse=True)
def _canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(CANARY, tmp_path, monkeypatch)


def hide(canary: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", canary)
    (folder / "jaas").write_text(f'Login required password="{canary}";', encoding="utf-8")


@pytest.fixture
def secretive(kafka: str) -> str:
    """A declaration with secrets wherever it may have some, in its source and its sink."""
    text = kafka.replace("localhost:9092", "${env:CANARY}.example.com:9092")
    return text.replace("        client.id: shop\n", SECRETS)


def test_it_is_given_to_the_client_alone(secretive: str, read: Read) -> None:
    shop = read(secretive)
    for place in (kafka_of(shop), shop.publish["finals"].sink):
        assert place.servers == f"{CANARY}.example.com:9092"
        assert place.options == {
            "sasl.jaas.config": f'Login required password="{CANARY}";',
            "ssl.key.password": CANARY,
            "client.id": f"of-{CANARY}",
        }


def test_what_can_be_seen_of_a_pipeline_does_not_hold_it(secretive: str, read: Read) -> None:
    shop = read(secretive)
    seen = [repr(shop), json.dumps(plan(shop)), describe(shop), json_text(), shop.digest]
    assert not [text for text in seen if CANARY in text]
    assert "${env:CANARY}.example.com:9092" in describe(shop)


def test_no_digest_is_made_of_it(
    secretive: str, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(secretive)
    hide("swordfish", tmp_path, monkeypatch)
    after = read(secretive)
    assert kafka_of(before).options != kafka_of(after).options
    assert before.digest == after.digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("servers: localhost:9092", "servers: ${env:CANARY}"),
        ("topic: orders", "topic: '${env:CANARY} ${file:jaas}'"),
        ("topic: orders", "pattern: '(${env:CANARY}'"),
        (START, "start: '${env:CANARY}'"),
        (START, "max_per_batch: '${env:CANARY}'"),
        (START, "min_per_batch: '${env:CANARY}'"),
        (START, "batch_target: '${env:CANARY}'"),
        (START, "unreachable_after: '${env:CANARY}'"),
        ("topic: finals", "topic: ${env:CANARY}/x"),
        (START, "isolation: '${env:CANARY}'"),
        (CLIENT, "        group.id: ${env:CANARY}\n    record:"),
        (CLIENT, "        client.id: '${env:CANARY} ${'\n    record:"),
    ],
)
def test_what_does_not_fit_is_not_shown(old: str, new: str, kafka: str, refuse: Refuse) -> None:
    assert old in kafka
    problems = refuse(kafka.replace(old, new, 1))
    assert len(problems) == 1
    assert CANARY not in repr(problems)


def test_nor_is_what_two_keys_mean_together(
    kafka: str, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOST", "4321")
    limits = "max_per_batch: '${env:MOST}'\n      min_per_batch: 5000"
    text = kafka.replace(START, limits).replace("topic: orders", "topic: ${env:CANARY}")
    limit, loop = refuse(text.replace("topic: finals", "topic: hunter2"))
    assert limit.message == "min_per_batch (5000) is more than max_per_batch (${env:MOST})"
    (least,) = refuse(kafka.replace(START, "max_per_batch: 5\n      min_per_batch: '${env:MOST}'"))
    assert least.message == "min_per_batch (${env:MOST}) is more than max_per_batch (5)"
    assert loop.key == "publish.finals.kafka.topic"
    assert CANARY not in loop.message


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("sasl.jaas.config", "Login required username=me password=hunter2;"),
        ("sasl.jaas.config", '\'Login required password="hunter2" username="${env:CANARY}";\''),
        ("sasl.jaas.config", '\'Login required clientSecret="hunter2" x="${env:CANARY}";\''),
        ("listener.name.x.sasl.jaas.config", "hunter2"),
        ("ssl.keystore.password", "hunter2"),
        ("ssl.keystore.password", "12342"),
        ("ssl.keystore.key", "hunter2"),
        ("basic.auth.user.info", "me:hunter2"),
        ("sasl.oauthbearer.client.credentials.client.secret", "hunter2"),
        ("some.passphrase", "hunter2"),
        ("some.properties", "password = hunter2"),
        ("some.properties", "'password=\"hunter2'"),
    ],
)
def test_a_secret_that_is_written_out_is_refused(
    key: str, written: str, kafka: str, refuse: Refuse
) -> None:
    for at, layer in ((0, "sources.orders"), (kafka.index("publish:"), "publish.finals")):
        text = kafka[:at] + kafka[at:].replace("client.id: shop", f"{key}: {written}", 1)
        (problem,) = refuse(text)
        assert problem.key == f"{layer}.kafka.options.{key}"
        assert "write ${env:NAME} or ${file:PATH}" in problem.message
        assert "hunter2" not in repr(problem)
        assert "12342" not in problem.message


@pytest.mark.parametrize(
    "options",
    [
        "{ssl.key.password: ${env:CANARY},hunter2}",
        '{sasl.jaas.config: Login password=${env:CANARY},hunter2" username=me}',
        "{ssl.key.password: *hunter2}",
        "{ssl.key.password: !hunter2 x}",
        "{ssl.key.password: !hunter2!x x}",
        "{ssl.key.password: &hunter2 x, client.id: &hunter2 y}",
        '{ssl.key.password: "\\hunter2"}',
        "{ssl.key.password: &hunter2}",
        "{ssl.key.password: [hunter2]}",
        "{ssl.key.password: '${env:CANARY}hunter2${'}",
        "{ssl.key.password: %hunter2}",
        "{ssl.key.password: 'hunter2}",
        "hunter2",
    ],
)
def test_what_yaml_makes_of_a_secret_is_not_shown(
    options: str, kafka: str, tmp_path: Path, read: Read
) -> None:
    text = kafka.replace("options:\n        client.id: shop", f"options: {options}", 1)
    with pytest.raises(DeclarationError) as caught:
        read(text)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("sasl.jaas.config", '\'Login username="me" password="${env:CANARY}" x="";\''),
        ("some.properties", '\'password="\\\\\\"${env:CANARY}"\''),
        ("ssl.truststore.location", "/etc/secrets/trust.jks"),
        ("sasl.oauthbearer.token.endpoint.url", "https://example.com/token"),
        ("ssl.truststore.certificates", "MIIB"),
    ],
)
def test_what_is_no_secret_may_be_written_out(
    key: str, written: str, kafka: str, read: Read
) -> None:
    assert key in kafka_of(read(kafka.replace("client.id: shop", f"{key}: {written}", 1))).options
