"""The webhook sink with a real receiver: order, repeats, dead letters, and what fails."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.errors import DeclarationError
from headgate.flow.publish.sinks import letters
from headgate.flow.publish.sinks.letters import DeadLetters
from headgate.flow.publish.sinks.webhook import receiver as requests
from headgate.flow.publish.sinks.webhook.declared import WebhookSink
from headgate.flow.publish.sinks.webhook.delivery import retry_pause
from headgate.flow.publish.sinks.webhook.receiver import Message, as_header
from headgate.flow.publish.sinks.webhook.signing import signature
from headgate.flow.publish.sinks.webhook.writer import ReceiverAwayError, WebhookWriter
from headgate.flow.publish.sinks.writers import Outgoing, SinkContext
from headgate.lake.storage.files import Storage
from headgate.machine.process_tree.ports import free_port
from tests.support.receiver import Receiver, Request, receiving
from tests.support.sinks import declared
from tests.support.waiting import wait_until

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes ...").decode()
PATIENCE = 30.0  # seconds
DOCUMENT = Path(__file__).resolve().parents[5] / "docs/sinks.md"


@dataclass(frozen=True)
class Row:
    """A row of a frame of messages."""

    id: str
    key: str | None
    revision: int = 0
    detail: str = "plain"

    def asDict(self) -> dict[str, Any]:  # noqa: N802
        texts = {"id": self.id, "table": "gold.sales", "detail": self.detail}
        texts["revision"] = str(self.revision)
        headers = [{"key": f"headgate-{k}", "value": v.encode()} for k, v in texts.items()]
        return {"headers": headers}

    def __getitem__(self, name: str) -> bytes | None:
        if name == "key":
            return None if self.key is None else self.key.encode()
        return json.dumps({"id": self.id}).encode()


def outgoing(*rows: Row, after: int = 0) -> Outgoing:
    frame: Any = SimpleNamespace(collect=lambda: list(rows))
    return Outgoing(frame, frame, after, after + 1, len(rows))


def quick(failures: int) -> float:
    return 0.01


def context(folder: Path) -> SinkContext:
    return SinkContext("shop", "sales", Storage(str(folder)))


def dead_letters(folder: Path) -> DeadLetters:
    return DeadLetters(Storage(str(folder)), "sales")


def writer(receiver: Receiver, folder: Path, **more: Any) -> WebhookWriter:
    sink = WebhookSink(f"{receiver.url}/in", "${env:URL}", **{"attempts": 3} | more)
    return WebhookWriter(sink, context(folder), quick)


def send_all(to: WebhookWriter, what: Outgoing) -> None:
    wait_until(lambda: to.send(what), "all rows are sent", PATIENCE)


def send_rest(to: WebhookWriter, what: Outgoing) -> None:
    """As ``send_all``, after an outage: the sink learns of its end after the receiver does."""

    def is_done() -> bool:
        try:
            return to.send(what)
        except ReceiverAwayError:
            return False

    wait_until(is_done, "all rows are sent", PATIENCE)


def kept(folder: Path) -> list[str]:
    return [letter.id for letter in dead_letters(folder).all()]


def test_a_request_for_each_row(tmp_path: Path) -> None:
    rows = [Row(f"r{i}", f"k{i % 3}", i, detail="é\nü \x00") for i in range(9)]
    with (
        receiving() as receiver,
        closing(writer(receiver, tmp_path, headers={"X-Team": "a"})) as to,
    ):
        send_all(to, outgoing(*reversed(rows)))
        assert sorted(receiver.ids()) == sorted(row.id for row in rows)
        by_key: dict[str, list[int]] = defaultdict(list)
        for request in receiver.took:
            revision = int(request.headers["headgate-revision"])
            by_key[f"k{revision % 3}"].append(revision)
            assert json.loads(request.body) == {"id": request.id}
            assert request.headers["headgate-id"] == request.id
            assert request.headers["headgate-table"] == "gold.sales"
            assert request.headers["headgate-detail"] == "%C3%A9%0A%C3%BC %00"
            assert request.headers["x-team"] == "a"
            assert request.headers["content-type"] == "application/json"
        assert all(found == sorted(found) for found in by_key.values())


def test_a_header_is_never_longer_than_a_server_takes() -> None:
    assert len(as_header("é" * 10_000_000)) == 6_000


def test_the_signature_is_the_one_of_the_specification() -> None:
    """The example of Standard Webhooks."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    id_, seconds = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    assert (
        signature(secret, id_, seconds, body) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_the_example_of_the_docs_checks_requests(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    space: dict[str, Any] = {}
    exec(code, space)
    is_genuine = space["is_genuine"]
    with receiving() as receiver, closing(writer(receiver, tmp_path, secret=SECRET)) as to:
        send_all(to, outgoing(Row("r1", "k")))
        (request,) = receiver.took
    assert is_genuine(SECRET, request.headers, request.body)
    assert not is_genuine(SECRET, request.headers, request.body + b" ")
    other = "whsec_" + base64.b64encode(b"another").decode()
    assert not is_genuine(other, request.headers, request.body)
    old = {**request.headers, "webhook-timestamp": str(int(time.time()) - 3600)}
    signed = f"{request.id}.{old['webhook-timestamp']}.".encode() + request.body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert not is_genuine(SECRET, {**old, "webhook-signature": f"v1,{digest}"}, request.body)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [400, 422, 500, "close"])
def test_a_poisoned_row_becomes_a_dead_letter(tmp_path: Path, answer: int | str) -> None:
    """Rows of other keys do not wait for it. Rows of its own key are sent after it."""
    rows = [
        Row("bad", "k0", 1),
        Row("next", "k0", 2),
        *(Row(f"r{i}", f"k{i}") for i in range(1, 9)),
    ]
    with receiving() as receiver, closing(writer(receiver, tmp_path)) as to:
        receiver.answer = lambda request: answer if request.id == "bad" else 200
        send_all(to, outgoing(*rows))
        assert sorted(receiver.ids()) == sorted(row.id for row in rows[1:])
        assert [request.id for request in receiver.seen].count("bad") == 3
        (letter,) = dead_letters(tmp_path).all()
        assert (letter.id, letter.attempts) == ("bad", 3)
        assert letter.why
        # It is sent again if a person requests it.
        sink = WebhookSink(receiver.url, "")
        why = SINKS["webhook"].resend(sink, letter)
        assert why == letter.why
        receiver.answer = lambda request: 200
        assert SINKS["webhook"].resend(sink, letter) is None
        assert receiver.took[-1].id == "bad"
        assert receiver.took[-1].body == letter.body


def test_a_row_is_sent_again_until_it_is_taken(tmp_path: Path) -> None:
    answers: Iterator[int | str] = iter([500, "close", 200])
    with receiving() as receiver, closing(writer(receiver, tmp_path)) as to:
        receiver.answer = lambda request: next(answers)
        send_all(to, outgoing(Row("r1", "k")))
        assert receiver.ids() == ["r1"]
        assert [request.id for request in receiver.seen] == ["r1"] * 3
        assert kept(tmp_path) == []


def test_a_receiver_that_answers_and_dies_gets_the_same_row_twice(tmp_path: Path) -> None:
    """The receiver has taken the row, but its answer is lost."""
    with receiving() as receiver, closing(writer(receiver, tmp_path)) as to:
        receiver.answer = lambda request: "close" if len(receiver.seen) == 1 else 200
        send_all(to, outgoing(Row("r1", "k")))
        first, second = receiver.seen
        assert (first.id, first.body) == (second.id, second.body)


@pytest.mark.slow
def test_a_row_on_which_the_receiver_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "READ", 3.0)
    with receiving() as receiver, closing(writer(receiver, tmp_path, attempts=2)) as to:
        receiver.answer = lambda request: "hang" if request.id == "bad" else 200
        send_all(to, outgoing(Row("bad", "k0"), Row("r1", "k1")))
        assert receiver.ids() == ["r1"]
        (letter,) = dead_letters(tmp_path).all()
        assert letter.why.startswith("has not answered")


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 307, 401, 404, 429, 503])
def test_answers_that_say_nothing_about_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """They make no row a dead letter, and no redirect is followed."""
    monkeypatch.setattr("headgate.flow.publish.sinks.webhook.delivery.BUSY_FOR", 0.0)
    with receiving() as receiver, closing(writer(receiver, tmp_path, attempts=1)) as to:
        receiver.answer = lambda request: status
        what = outgoing(Row("r1", "k"), Row("r2", "l"))
        with pytest.raises(ReceiverAwayError) as away:
            send_all(to, what)
        said = to.failure(away.value) or ""
        assert said.startswith(f"${{env:URL}} answers {status}")
        wait_until(lambda: len(receiver.seen) > 5, "it tries again", PATIENCE)
        assert {request.path for request in receiver.seen} == {"/in"}
        receiver.answer = lambda request: 200
        wait_until(lambda: len(receiver.took) == 2, "the rows are taken", PATIENCE)
        send_rest(to, what)
        assert sorted(receiver.ids()) == ["r1", "r2"]
        assert kept(tmp_path) == []


def test_a_receiver_that_is_not_there(tmp_path: Path) -> None:
    port = free_port()
    nowhere = Receiver(f"http://127.0.0.1:{port}")
    with closing(writer(nowhere, tmp_path, attempts=1)) as to:
        what = outgoing(Row("r1", "k"))
        with pytest.raises(ReceiverAwayError, match="cannot be reached"):
            send_all(to, what)
        with receiving(port) as receiver:
            receiver.wait_for(1)
            send_rest(to, what)
            assert receiver.ids() == ["r1"]
    assert kept(tmp_path) == []


@pytest.mark.slow
def test_a_batch_does_not_wait_for_a_slow_receiver(tmp_path: Path) -> None:
    free = threading.Event()
    with receiving() as receiver, closing(writer(receiver, tmp_path)) as to:

        def slow(request: Request) -> int:
            free.wait()
            return 200

        receiver.answer = slow
        what = outgoing(*(Row(f"r{i}", f"k{i}") for i in range(20)))
        began = time.monotonic()
        assert not to.send(what)
        assert time.monotonic() - began < 5
        free.set()
        send_all(to, what)
        assert len(receiver.ids()) == len(set(receiver.ids())) == 20


def test_nothing_is_sent_after_the_end(tmp_path: Path) -> None:
    with receiving() as receiver:
        to = writer(receiver, tmp_path)
        receiver.answer = lambda request: 503
        with pytest.raises(ReceiverAwayError):
            send_all(to, outgoing(Row("r1", "k")))
        to.close()
        wait_until(
            lambda: not any(t.name.startswith("webhook-") for t in threading.enumerate()),
            "its threads end",
            PATIENCE,
        )


def test_dead_letters_have_a_ceiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that refuses all must not fill the disk: the publication stops."""
    monkeypatch.setattr(letters, "MOST", 2)
    with receiving() as receiver, closing(writer(receiver, tmp_path, attempts=1)) as to:
        receiver.answer = lambda request: 500
        with pytest.raises(ReceiverAwayError, match="there are 2 dead letters already"):
            send_all(to, outgoing(*(Row(f"r{i}", f"k{i}") for i in range(9))))
        assert len(kept(tmp_path)) == 2


def test_a_publication_goes_on_once_dead_letters_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver that runs sees it: no restart is needed."""
    monkeypatch.setattr(letters, "MOST", 2)
    with receiving() as receiver, closing(writer(receiver, tmp_path, attempts=1)) as to:
        receiver.answer = lambda request: 500
        send_all(to, outgoing(Row("r1", "a"), Row("r2", "b")))
        refused = outgoing(Row("r3", "c"), after=1)
        with pytest.raises(ReceiverAwayError, match="there are 2 dead letters already"):
            send_all(to, refused)
        found = dead_letters(tmp_path)
        found.remove(found.ids()[0])
        send_rest(to, refused)
        assert sorted(kept(tmp_path)) == ["r2", "r3"]


def test_a_letter_that_is_replaced_does_not_count_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "MOST", 2)
    dead = dead_letters(tmp_path)

    def keep(id_: str) -> str | None:
        return dead.keep(letters.Letter(id_, b"", {}, "answers 500", 1, datetime.now(UTC)))

    assert [keep(id_) for id_ in ("r1", "r1", "r1", "r2", "r1")] == [None] * 5
    assert "there are 2 dead letters already" in (keep("r3") or "")


def test_pauses_grow_to_a_minute() -> None:
    assert [retry_pause(n) for n in (1, 2, 3, 7, 30)] == [1, 2, 4, 60, 60]


def test_messages_have_no_secret_of_the_url(tmp_path: Path) -> None:
    sink = WebhookSink("http://127.0.0.1:1/token-in-path", "${env:URL}", secret=SECRET)
    outcome = requests.Receiver(sink).post(Message("r1", None, b"", {}))
    assert outcome.is_away
    assert "token" not in outcome.why
    assert "token" not in repr(sink)
    assert SECRET not in repr(sink)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("url: 'ftp://h/x'", "is not an address such as"),
        ("url: 'https://ann:hunter22@h/x'", "has a user or a password"),
        ("url: 'http://h/x'", "is not encrypted"),
        ("url: 'https://h/x', secret: hunter22", "is a secret"),
        ("url: 'https://h/x', headers: {Authorization: hunter22}", "is a secret"),
        ("url: 'https://h/x', headers: {X-Api-Key: hunter22}", "is a secret"),
        ("url: 'https://h/x', headers: {Content-Type: a}", "is set by Headgate"),
        ("url: 'https://h/x', headers: {'a b': a}", "the name of a header has"),
    ],
)
def test_declarations_that_are_refused(keys: str, problem: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(f"webhook: {{{keys}}}")
    assert problem in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize(
    "keys",
    [
        "url: 'http://127.0.0.1:8/x'",
        "url: 'http://localhost/x'",
        "url: 'http://h/x', allow_http: true",
    ],
)
def test_plain_http_that_is_allowed(keys: str) -> None:
    (publication,) = declared(f"webhook: {{{keys}}}").publish.values()
    assert publication.sink.url in keys
