"""Ends connections of clients that send their requests too slowly."""

from __future__ import annotations

from asyncio import BaseTransport, TimerHandle

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ASKS_WITHIN = 10.0  # seconds


class PromptProtocol(H11Protocol):
    """Cuts a connection whose request, with its body, is not complete in time: connections are few,
    and clients that only hold them would keep all others out."""

    _asks_within = ASKS_WITHIN
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Set or remove the deadline of a request. Further bytes do not move it."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._asks_within, self.transport.abort)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
