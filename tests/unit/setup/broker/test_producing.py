"""What is reported if lines before a faulty one were not delivered."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from headgate.setup.broker import client, producing
from headgate.setup.broker.client import NotDeliveredError
from headgate.setup.broker.producing import LineError, produce, records

LINES = b'{"k": 1}\n{"k": 2}\n{"x": 3}\n'


@dataclass
class Queue:
    """A producer that delivers at ``flush``, or refuses every record."""

    error: KafkaError | None
    waiting: list[Callable[..., None]] = field(default_factory=list)

    def produce(self, *_: object, on_delivery: Callable[..., None]) -> None:
        self.waiting.append(on_delivery)

    def poll(self, _: float) -> None: ...

    def flush(self) -> None:
        message: Any = SimpleNamespace(partition=lambda: 0)
        while self.waiting:
            self.waiting.pop()(self.error, message)


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Callable[[KafkaError | None], dict[int, int]]:
    def send(error: KafkaError | None) -> dict[int, int]:
        monkeypatch.setattr(producing, "Producer", lambda _: Queue(error))
        monkeypatch.setattr(client, "partitions", lambda *_: (0,))
        return produce("here:9092", "bids", records(io.BytesIO(LINES), "k", "bids.json", "again"))

    return send


def test_lines_before_a_faulty_one_that_were_refused_are_not_in_the_topic(
    send: Callable[[KafkaError | None], dict[int, int]],
) -> None:
    with pytest.raises(NotDeliveredError, match="0 records were delivered, then 2 were not") as no:
        send(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert isinstance(no.value.__cause__, LineError)


def test_lines_before_a_faulty_one_that_were_delivered_are_in_the_topic(
    send: Callable[[KafkaError | None], dict[int, int]],
) -> None:
    with pytest.raises(LineError, match="line 3: .* only the lines before it are in the topic"):
        send(None)
