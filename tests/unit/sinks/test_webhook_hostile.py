"""The webhook sink with wrong secrets and hosts, and with receivers that answer in bad faith."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.sinks.webhook import receiver as requests
from headgate.sinks.webhook.declared import WebhookSink
from headgate.sinks.webhook.receiver import Message, Receiver
from tests.support.sinks import declared

Answer = Callable[[socket.socket, threading.Event], None]
MESSAGE = Message("r1", None, b"{}", {})


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The url of a receiver that reads one request and gives ``answer``, with an event that is set
    at the end."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            try:
                answer(connection, over)
            except OSError:
                return  # it has heard enough

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def trickling(head: bytes, piece: bytes) -> Answer:
    """Each piece comes well within the limit of a single one."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        for _ in range(400):
            connection.sendall(piece)
            if over.wait(0.05):
                return

    return answer


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


@pytest.mark.parametrize(
    ("head", "piece", "why"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n.\r\n", ""),
        (b"Content-Length: 60000\r\n\r\n", b".", ""),
        (b"X-A: ", b".", "has not answered within 1 seconds"),
    ],
)
def test_an_answer_that_trickles(
    monkeypatch: pytest.MonkeyPatch, head: bytes, piece: bytes, why: str
) -> None:
    """Its status is taken, and its end is not waited for."""
    monkeypatch.setattr(requests, "READ", 1.0)
    with answering(trickling(b"HTTP/1.1 200 OK\r\n" + head, piece)) as url:
        began = time.monotonic()
        outcome = Receiver(WebhookSink(url, "")).post(MESSAGE)
        assert time.monotonic() - began < 10
    assert outcome.why == why
