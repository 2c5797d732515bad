"""Retries requests to brokers that do not answer, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from headgate.sources.kafka.declared import KafkaSource
from headgate.sources.kafka.errors import BrokersUnreachableError

ASK_AGAIN = 1.0  # seconds between attempts

Answer = TypeVar("Answer")


class BrokerRetry:
    """Measures the time since the first request without an answer. Several threads use it; an
    answer to any of them counts for all. ``monotonic`` is in seconds. ``waits`` is called
    repeatedly with the reason, and raises if the driver must end."""

    def __init__(
        self, source: KafkaSource, monotonic: Callable[[], float], waits: Callable[[str], None]
    ) -> None:
        self._limit = source.unreachable_after
        self._servers = source.servers
        self._monotonic = monotonic
        self._waits = waits
        self._silent_since: float | None = None

    @property
    def trouble(self) -> str | None:
        """A message about why the brokers do not answer; None if they do."""
        since = self._silent_since
        if since is None:
            return None
        silent = self._monotonic() - since
        return f"no answer from the brokers {self._servers} for {silent:.0f} s"

    def answered(self) -> None:
        self._silent_since = None

    def record_failure(self, error: BrokersUnreachableError) -> None:
        """Record that there was no answer. Raises BrokersUnreachableError if there was none for
        ``unreachable_after``."""
        now = self._monotonic()
        since = now if self._silent_since is None else self._silent_since
        self._silent_since = since
        silent = timedelta(seconds=now - since)
        if silent >= self._limit:
            raise BrokersUnreachableError(
                f"{error.message}; asked for {silent.total_seconds():.0f} s "
                "(unreachable_after in the declaration)",
                remedy=error.remedy,
            ) from None

    def persist(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer. Blocks; raises as ``record_failure`` and ``waits`` do."""
        while True:
            try:
                answer = ask()
            except BrokersUnreachableError as error:
                self.record_failure(error)
                self._waits(self.trouble or error.message)
                time.sleep(ASK_AGAIN)
            else:
                self.answered()
                return answer
