"""Hands the rows of a publication to a delivery in the background."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from headgate.failpoints import failpoint
from headgate.flow.publish.sinks.letters import DeadLetters, Letter
from headgate.flow.publish.sinks.webhook.declared import WebhookSink
from headgate.flow.publish.sinks.webhook.delivery import Delivery, retry_pause
from headgate.flow.publish.sinks.webhook.receiver import Message, Receiver, RequestOutcome
from headgate.flow.publish.sinks.writers import (
    BRIEFLY,
    Outgoing,
    SinkContext,
    Writer,
    headers_of,
    parts_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Row

ROWS_PER_PIECE = 100_000
"""The number of rows in a piece, about. While one is sent, the JVM holds the next one."""

_PIECE = "piece"


class ReceiverAwayError(Exception):
    """The receiver accepts no row, or a dead letter cannot be stored."""


class WebhookWriter(Writer):
    """Delivers at least once. ``waits`` returns the pause in seconds after a number of failures."""

    def __init__(
        self,
        sink: WebhookSink,
        context: SinkContext,
        waits: Callable[[int], float] = retry_pause,
    ) -> None:
        self._sink, self._waits = sink, waits
        self._receiver = Receiver(sink)
        self._letters = DeadLetters(context.storage, context.name)
        # The step that is being sent, as (after, upto): its pieces that are not begun, and the
        # delivery of the one that is.
        self._step: tuple[int, int] | None = None
        self._pieces: Iterator[list[Message]] = iter(())
        self._delivery: Delivery | None = None

    def send(self, outgoing: Outgoing) -> bool:
        step = outgoing.after, outgoing.upto
        if self._step != step:
            self.close()
            self._step, self._pieces = step, pieces_of(outgoing)
        until = time.monotonic() + BRIEFLY
        while (delivery := self._delivery or self._next()) is not None:
            if not delivery.wait(max(until - time.monotonic(), 0.0)):
                if why := delivery.why_away:
                    raise ReceiverAwayError(f"{self._sink.written} {why}")
                return False
            self._delivery = None
        self._step = None
        failpoint("webhook.sent")
        return True

    def failure(self, error: Exception) -> str | None:
        return str(error) if isinstance(error, ReceiverAwayError) else None

    def close(self) -> None:
        if self._delivery is not None:
            self._delivery.close()
        self._step, self._pieces, self._delivery = None, iter(()), None

    def _next(self) -> Delivery | None:
        """Begin the delivery of the next piece; None if there is none."""
        try:
            if (messages := next(self._pieces, None)) is not None:
                attempts = self._sink.attempts
                self._delivery = Delivery(messages, self._post, self._bury, attempts, self._waits)
        except BaseException:
            self.close()  # the next call begins with the first piece again
            raise
        return self._delivery

    def _post(self, message: Message) -> RequestOutcome:
        outcome = self._receiver.post(message)
        failpoint("webhook.posted")
        return outcome

    def _bury(self, message: Message, why: str, attempts: int) -> str | None:
        now = datetime.now(UTC)
        letter = Letter(message.id, message.body, message.headers, why, attempts, now)
        return self._letters.keep(letter)


def pieces_of(outgoing: Outgoing) -> Iterator[list[Message]]:
    """The rows as messages, in pieces that fit into memory. All rows of a key are in one piece, in
    the order of their revisions and batches."""
    pieces = parts_of(outgoing.count, ROWS_PER_PIECE, outgoing.size)
    if pieces == 1:
        yield _messages(outgoing.messages.collect())
        return
    from pyspark.sql import functions as F

    # Rows without a key are spread by their headers, which have the id: their values may be equal.
    spread = F.when(F.col("key").isNull(), F.col("headers"))
    divided = outgoing.messages.repartition(pieces, F.col("key"), spread)
    numbered = divided.withColumn(_PIECE, F.spark_partition_id()).toLocalIterator()
    held: list[Row] = []
    for _, rows in groupby(numbered, lambda row: row[_PIECE]):
        held += rows
        # There may be far fewer rows than ``count``.
        if len(held) >= outgoing.count / pieces / 2:
            yield _messages(held)
            held = []
    yield _messages(held)


def _messages(rows: Iterable[Row]) -> list[Message]:
    found = []
    for row in rows:
        headers = headers_of(row.asDict())
        id_ = headers.pop("headgate-id")
        order = tuple(int(headers.get(f"headgate-{name}", 0)) for name in ("revision", "batch"))
        key = None if row["key"] is None else bytes(row["key"])
        found.append((order, Message(id_, key, bytes(row["value"] or b""), headers)))
    return [message for _, message in sorted(found, key=lambda each: each[0])]
