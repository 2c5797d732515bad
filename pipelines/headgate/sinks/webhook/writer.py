"""Hands the rows of a publication to a delivery in the background."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from headgate.failpoints import failpoint
from headgate.sinks.contract import BRIEFLY, Outgoing, SinkContext, Writer, headers_of
from headgate.sinks.letters import DeadLetters, Letter
from headgate.sinks.webhook.declared import WebhookSink
from headgate.sinks.webhook.delivery import Delivery, pause
from headgate.sinks.webhook.receiver import Message, Outcome, Receiver


class ReceiverAwayError(Exception):
    """The receiver accepts no row, or a dead letter cannot be stored."""


class WebhookWriter(Writer):
    """Delivers at least once. ``waits`` returns the pause in seconds after a number of failures."""

    def __init__(
        self,
        sink: WebhookSink,
        context: SinkContext,
        waits: Callable[[int], float] = pause,
    ) -> None:
        self._sink, self._waits = sink, waits
        self._receiver = Receiver(sink)
        self._letters = DeadLetters(context.storage, context.name)
        self._begun: tuple[tuple[int, int], Delivery] | None = None

    def send(self, outgoing: Outgoing) -> bool:
        span = outgoing.after, outgoing.upto
        if self._begun is None or self._begun[0] != span:
            self.close()
            self._begun = span, self._delivery(outgoing)
        delivery = self._begun[1]
        if delivery.wait(BRIEFLY):
            self._begun = None
            failpoint("webhook.sent")
            return True
        if why := delivery.why_away:
            raise ReceiverAwayError(f"{self._sink.written} {why}")
        return False

    def failure(self, error: Exception) -> str | None:
        return str(error) if isinstance(error, ReceiverAwayError) else None

    def close(self) -> None:
        if self._begun is not None:
            self._begun[1].close()
            self._begun = None

    def _delivery(self, outgoing: Outgoing) -> Delivery:
        messages = messages_of(outgoing)
        return Delivery(messages, self._post, self._bury, self._sink.attempts, self._waits)

    def _post(self, message: Message) -> Outcome:
        outcome = self._receiver.post(message)
        failpoint("webhook.posted")
        return outcome

    def _bury(self, message: Message, why: str, attempts: int) -> str | None:
        now = datetime.now(UTC)
        letter = Letter(message.id, message.body, message.headers, why, attempts, now)
        return self._letters.keep(letter)


def messages_of(outgoing: Outgoing) -> list[Message]:
    """The rows as messages. Those of one key are in the order of their revisions and batches."""
    found = []
    for row in outgoing.messages.collect():
        headers = headers_of(row.asDict())
        id_ = headers.pop("headgate-id")
        order = tuple(int(headers.get(f"headgate-{name}", 0)) for name in ("revision", "batch"))
        key = None if row["key"] is None else bytes(row["key"])
        found.append((order, Message(id_, key, bytes(row["value"] or b""), headers)))
    return [message for _, message in sorted(found, key=lambda each: each[0])]
