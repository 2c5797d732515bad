"""The webhook sink with wrong secrets and hosts, and with receivers that answer in bad faith."""

from __future__ import annotations

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.sinks.webhook.declared import WebhookSink
from headgate.sinks.webhook.receiver import Message, Receiver
from tests.support.sinks import declared

MESSAGE = Message("r1", None, b"{}", {})


@pytest.mark.parametrize("secret", ["whsec_abcde", "whsec_", "whsec_aGVs-G8_", "whsec_é"])
def test_a_secret_that_is_no_key_is_refused(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    """Else a request in the background fails, and with it the driver."""
    monkeypatch.setenv("HOOK", secret)
    with pytest.raises(DeclarationError) as refused:
        declared("webhook: {url: 'https://h/x', secret: '${env:HOOK}'}")
    (problem,) = refused.value.problems
    assert problem.key == "publish.finals.webhook.secret"
    assert problem.message == "is no secret of Standard Webhooks: whsec_ and base64"


@pytest.mark.parametrize("host", ["receiver..example", f"{'a' * 64}.example", "a b.example"])
def test_a_host_that_cannot_be_one(host: str) -> None:
    """It is refused; and if a resolved one is such, the rows wait for a person."""
    url = f"https://{host}/x"
    with pytest.raises(DeclarationError, match="is not an address such as"):
        declared(f"webhook: {{url: '{url}'}}")
    assert Receiver(WebhookSink(url, "")).post(MESSAGE).is_away
