"""The webhook sink with wrong secrets and hosts, and with receivers that answer in bad faith."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.secrets import secrets_of, without
from headgate.flow.publish.sinks.webhook import receiver as requests
from headgate.flow.publish.sinks.webhook.declared import WebhookSink
from headgate.flow.publish.sinks.webhook.receiver import Message, Receiver, RequestOutcome
from tests.support.sinks import declared

Answer = Callable[[socket.socket, threading.Event], None]
MESSAGE = Message("r1", None, b"{}", {})


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The URL of a receiver that reads one request and then calls ``answer`` with its connection
    and an event, which is set at the end."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            try:
                answer(connection, over)
            except OSError:
                return  # the client has closed the connection

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def trickling(head: bytes, piece: bytes) -> Answer:
    """Sends each piece well within the time limit of a single piece."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        for _ in range(400):
            connection.sendall(piece)
            if over.wait(0.05):
                return

    return answer


@pytest.mark.parametrize("secret", ["whsec_abcde", "whsec_", "whsec_aGVs-G8_", "whsec_é"])
def test_a_secret_that_is_no_key_is_refused(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    """Otherwise a request in the background would fail, and with it the driver."""
    monkeypatch.setenv("HOOK", secret)
    with pytest.raises(DeclarationError) as refused:
        declared("webhook: {url: 'https://h/x', secret: '${env:HOOK}'}")
    (problem,) = refused.value.problems
    assert problem.key == "publish.finals.webhook.secret"
    assert problem.message == "is not a secret of Standard Webhooks: whsec_ and base64"


@pytest.mark.parametrize("host", ["receiver..example", f"{'a' * 64}.example", "a b.example"])
def test_a_host_that_cannot_be_one(host: str) -> None:
    """It is refused. If only the resolved URL has such a host, the rows wait for a person."""
    url = f"https://{host}/x"
    with pytest.raises(DeclarationError, match="is not an address such as"):
        declared(f"webhook: {{url: '{url}'}}")
    assert Receiver(WebhookSink(url, "")).post(MESSAGE).is_away


@pytest.mark.parametrize(
    ("head", "piece", "why"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n.\r\n", ""),
        (b"Content-Length: 60000\r\n\r\n", b".", ""),
        (b"X-A: ", b".", "has not answered within 2 seconds"),
    ],
)
def test_an_answer_that_trickles(
    monkeypatch: pytest.MonkeyPatch, head: bytes, piece: bytes, why: str
) -> None:
    """Its status counts, and the sink does not wait for its end."""
    monkeypatch.setattr(requests, "READ", 1.6)
    with answering(trickling(b"HTTP/1.1 200 OK\r\n" + head, piece)) as url:
        began = time.monotonic()
        outcome = Receiver(WebhookSink(url, "")).post(MESSAGE)
        assert time.monotonic() - began < 10
    assert outcome.why == why


def test_the_rest_of_a_long_answer_is_not_the_next_answer() -> None:
    """Only what is read at once counts: the rest may arrive after the next request."""
    empty = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {requests._READ_OF_ANSWER + 9}\r\n\r\n".encode()

    def serve() -> None:
        with suppress(OSError):
            for answer in (head + requests._READ_OF_ANSWER * b".", empty):
                connection, _ = listening.accept()
                connections.enter_context(connection)
                connection.recv(1 << 16)
                connection.sendall(answer)

    with ExitStack() as connections, socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        thread = threading.Thread(target=serve)
        thread.start()
        to = Receiver(WebhookSink(f"http://127.0.0.1:{listening.getsockname()[1]}", ""))
        outcomes = [to.post(MESSAGE), to.post(MESSAGE)]
        thread.join()
    assert outcomes == [RequestOutcome(), RequestOutcome()]


def test_no_library_writes_the_url_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """urllib3 logs the URL if the headers of an answer are invalid."""
    logging.getLogger("urllib3").setLevel(logging.NOTSET)

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nno colon\r\n\r\n")

    with answering(answer) as url, caplog.at_level(logging.WARNING):
        assert Receiver(WebhookSink(f"{url}/services/token", "")).post(MESSAGE).taken
    assert caplog.text == ""


def test_the_path_of_a_secret_url_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "https://h.example/services/t0ken?more=t0ken")
    secrets = secrets_of(declared("webhook: {url: '${env:HOOK}'}"))
    assert "t0ken" not in without(secrets, "POST https://h.example:443/services/t0ken?more=t0ken")
    # An address without a placeholder is no secret.
    assert not secrets_of(declared("webhook: {url: 'https://h.example/services/t0ken'}"))
