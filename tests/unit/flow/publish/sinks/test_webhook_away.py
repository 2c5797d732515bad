"""How long a delivery waits for a receiver that is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, repeat

import pytest

from headgate.flow.publish.sinks.webhook.declared import WebhookSink
from headgate.flow.publish.sinks.webhook.delivery import Delivery
from headgate.flow.publish.sinks.webhook.receiver import (
    CONNECTIONS,
    Message,
    Receiver,
    RequestOutcome,
)
from tests.support.receiver import receiving
from tests.support.waiting import wait_until

PATIENCE = 30.0  # seconds
MESSAGE = Message("r1", None, b"", {})


class Away:
    """Answers ``together`` requests at once, with ``outcome``. ``pauses`` has the numbers of
    failures after which a delivery pauses, so long that it sends nothing again."""

    def __init__(self, outcome: RequestOutcome, together: int = 1) -> None:
        self.outcome, self.pauses = outcome, list[int]()
        self._together = threading.Barrier(together)

    def post(self, message: Message) -> RequestOutcome:
        self._together.wait(PATIENCE)
        return self.outcome

    def pause(self, failures: int) -> float:
        self.pauses.append(failures)
        return 3600.0


def test_requests_that_fail_together_are_one_failure() -> None:
    """Otherwise the pause would grow four times too fast."""
    away = Away(RequestOutcome("answers 503", is_away=True), CONNECTIONS)
    rows = [replace(MESSAGE, id=f"r{number}") for number in range(CONNECTIONS)]
    with closing(Delivery(rows, away.post, lambda *_: None, 8, away.pause)) as delivery:
        wait_until(lambda: len(away.pauses) == CONNECTIONS, "all requests have failed", PATIENCE)
        assert away.pauses == [1] * CONNECTIONS
        assert delivery.why_away == "answers 503"


def test_rows_that_are_always_refused_do_not_hold_up_the_others() -> None:
    """Also if they are as many as the connections."""
    refused, sent = {f"r{number}" for number in range(CONNECTIONS)}, list[str]()

    def post(message: Message) -> RequestOutcome:
        if message.id in refused:
            return RequestOutcome("answers 403", is_away=True)
        sent.append(message.id)
        return RequestOutcome()

    rows = [replace(MESSAGE, id=f"r{number}") for number in range(CONNECTIONS + 20)]
    with closing(Delivery(rows, post, lambda *_: None, 8, lambda _: 0.01)):
        wait_until(lambda: len(sent) == 20, "the others are sent", PATIENCE)


@pytest.mark.parametrize(("asked", "waits"), [(0.0, 1.0), (30.0, 30.0), (86_400.0, 60.0)])
def test_the_pause_that_the_receiver_asks_for(asked: float, waits: float) -> None:
    away, began = Away(RequestOutcome("answers 429", is_away=True, wait=asked)), time.monotonic()
    with closing(Delivery([MESSAGE], away.post, lambda *_: None, 8)) as found:
        wait_until(lambda: bool(found.why_away), "the request has failed", PATIENCE)
        assert began + waits <= found._away_until <= time.monotonic() + 2 * waits


@pytest.mark.parametrize(
    ("header", "wait"), [("120", 120), ("", 0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-5", 0)]
)
def test_what_the_receiver_asks_for_is_read(header: str, wait: float) -> None:
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda request: 429, {"Retry-After": header}
        outcome = Receiver(WebhookSink(receiver.url, "")).post(MESSAGE)
    assert outcome == RequestOutcome("answers 429", is_away=True, wait=wait, is_busy=True)


@pytest.mark.parametrize(
    ("status", "header", "is_busy"),
    [(429, "", True), (503, "5", True), (503, "", False), (500, "5", False), (401, "", False)],
)
def test_an_answer_that_limits_the_rate(status: int, header: str, is_busy: bool) -> None:
    with receiving() as receiver:
        receiver.answer, receiver.headers = lambda request: status, {"Retry-After": header}
        assert Receiver(WebhookSink(receiver.url, "")).post(MESSAGE).is_busy is is_busy


def limited(answers: Iterator[RequestOutcome]) -> Delivery:
    """A delivery of four rows of one key, which gets these answers one after the other."""
    rows = [replace(MESSAGE, id=f"r{number}", key=b"k") for number in range(4)]
    return Delivery(rows, lambda _: next(answers), lambda *_: None, 8, lambda _: 0.01)


BUSY = RequestOutcome("answers 429", is_away=True, is_busy=True)


def test_a_receiver_that_accepts_rows_between_two_limits_is_not_away() -> None:
    answers = [each for _ in range(4) for each in (BUSY, BUSY, RequestOutcome())]
    with closing(limited(iter(answers))) as delivery:
        began = time.monotonic()
        while not delivery.wait(PATIENCE):
            assert delivery.why_away == ""
            assert time.monotonic() < began + PATIENCE


def test_a_receiver_that_accepts_no_row_any_more_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.flow.publish.sinks.webhook.delivery.BUSY_FOR", 0.2)
    with closing(limited(chain([RequestOutcome()], repeat(BUSY)))) as delivery:
        wait_until(lambda: bool(delivery.why_away), "it is away", PATIENCE)
        assert not delivery.wait(PATIENCE)


def test_a_receiver_that_is_away_for_another_reason_is_away_at_once() -> None:
    with closing(
        limited(chain([RequestOutcome(), BUSY], repeat(RequestOutcome("503", is_away=True))))
    ) as found:
        wait_until(lambda: found.why_away == "503", "it is away", PATIENCE)
