"""A producer that keeps sending while the broker fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from headgate.setup.broker import client
from headgate.setup.broker.running import Broker
from tests.support.broker import PATIENCE, place_of

EVERY = 0.12  # seconds between records


class Producing:
    """Sends each value once, in order, from its own thread, whatever happens to the broker.
    ``sent`` are the values sent so far."""

    def __init__(
        self, broker: Broker, topic: str, partitions: int, values: Sequence[bytes]
    ) -> None:
        from confluent_kafka import Producer

        settings: dict[str, Any] = client.settings(
            broker.servers, enable_idempotence=True, message_timeout_ms=300_000
        )
        self._producer = Producer(settings)
        self._topic, self._partitions, self._values = topic, partitions, values
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failures: list[object] = []
        self.sent: list[bytes] = []

    def _run(self) -> None:
        for value in self._values:
            if self._done.wait(EVERY):
                return
            key, partition = place_of(value, self._partitions)
            self._producer.produce(
                self._topic, value, key, partition=partition, on_delivery=self._told
            )
            self._producer.poll(0)
            self.sent.append(value)

    def _told(self, error: object, _: object) -> None:
        if error is not None:
            self._failures.append(error)

    def stop(self) -> None:
        """Stop sending, and wait until the broker has everything that was sent."""
        self._done.set()
        self._thread.join(PATIENCE)
        assert self._producer.flush(2 * PATIENCE) == 0, "not all were delivered"
        assert not self._failures

    def __enter__(self) -> Producing:
        self._thread.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(PATIENCE)
