"""A wrong setting is reported without its value, which may contain a password."""

from __future__ import annotations

import logging
import os

import pytest

from headgate.insight.lineage.emitting import LineageError, client

pytest.importorskip("openlineage.client")
PASSWORD = "not-for-logs"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("OPENLINEAGE_URL", f"htp//me:{PASSWORD}@marquez:5000", "ValueError"),
        ("OPENLINEAGE_URL", f"http://me:{PASSWORD}@marquez:50x0", "ValueError"),
        (
            "OPENLINEAGE__TRANSPORT",
            f'{{"type": "http", "auth": {{"apiKey": "{PASSWORD}"',
            "OPENLINEAGE__TRANSPORT is not JSON: Expecting ',' delimiter at character",
        ),
        (
            "OPENLINEAGE__TRANSPORT",
            f'{{"type": "htttp", "url": "http://me:{PASSWORD}@marquez"}}',
            "the client rejects the OPENLINEAGE_… variables",
        ),
    ],
)
def test_a_wrong_setting_is_told_without_its_value(
    name: str,
    value: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for other in [each for each in os.environ if each.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(other)
    monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING), pytest.raises(LineageError) as refused:
        client()
    assert says in str(refused.value)
    assert PASSWORD not in str(refused.value) + caplog.text
