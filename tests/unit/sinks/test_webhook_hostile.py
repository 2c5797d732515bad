"""The webhook sink with wrong secrets and hosts, and with receivers that answer in bad faith."""

from __future__ import annotations

import pytest

from headgate.declaration.errors import DeclarationError
from tests.support.sinks import declared


@pytest.mark.parametrize("secret", ["whsec_abcde", "whsec_", "whsec_aGVs-G8_", "whsec_é"])
def test_a_secret_that_is_no_key_is_refused(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    """Else a request in the background fails, and with it the driver."""
    monkeypatch.setenv("HOOK", secret)
    with pytest.raises(DeclarationError) as refused:
        declared("webhook: {url: 'https://h/x', secret: '${env:HOOK}'}")
    (problem,) = refused.value.problems
    assert problem.key == "publish.finals.webhook.secret"
    assert problem.message == "is no secret of Standard Webhooks: whsec_ and base64"
