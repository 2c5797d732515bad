"""Secrets that are removed from every text that is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from headgate.declaration.model import Pipeline
from headgate.declaration.secrets import secrets_in, secrets_of, without

JAAS = 'org.apache.PlainLoginModule required username="ann" password="{}";'


@pytest.mark.parametrize(
    ("options", "text", "shown"),
    [
        ({"ssl.key.password": "open sesame"}, "wrong: open sesame", "wrong: ***"),
        (
            {"sasl.jaas.config": JAAS.format("open sesame")},
            f"cannot parse {JAAS.format('open sesame')}",
            "cannot parse ***",
        ),
        # A message may quote only a part of a secret, escaped or not.
        ({"sasl.jaas.config": JAAS.format("open")}, "ann's open is wrong", "ann's *** is wrong"),
        ({"sasl.jaas.config": JAAS.format(r"o\"p\\n")}, r'is o"p\n or o\"p\\n', "is *** or ***"),
        ({"sasl.jaas.config": "X required password=open;"}, "open", "***"),
        ({"sasl.jaas.config": "X required clientSecret='o p';"}, "is o p", "is ***"),
        ({"sasl.jaas.config": 'X required password="open;'}, "is open", "is ***"),
        # Names and words that are not secrets stay.
        (
            {"client.id": "orders-reader", "security.protocol": "SASL_PLAINTEXT"},
            "orders-reader uses SASL_PLAINTEXT",
            "orders-reader uses SASL_PLAINTEXT",
        ),
        ({"ssl.key.password": ""}, "text", "text"),
    ],
)
def test_what_is_left_of_a_text(options: Mapping[str, str], text: str, shown: str) -> None:
    assert without(secrets_in(options), text) == shown


def test_of_two_secrets_the_longer_goes_first() -> None:
    assert without(["open", "open sesame"], "open sesame open") == "*** ***"


def test_of_a_whole_declaration(
    kafka: str, read: Callable[[str], Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READER", "reader's own")
    monkeypatch.setenv("WRITER", "writer's own")
    first, second = kafka.split("publish:")
    text = "publish:".join(
        part.replace("client.id: shop", f"ssl.key.password: ${{env:{name}}}")
        for part, name in ((first, "READER"), (second, "WRITER"))
    )
    assert secrets_of(read(text)) == {"reader's own", "writer's own"}
