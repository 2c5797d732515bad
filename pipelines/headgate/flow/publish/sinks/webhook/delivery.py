"""Sends the rows of one step in the background: in order per key, again after a failure.

Batches never wait for a receiver. A row that the receiver refuses is sent again, after a longer
pause each time. Only the rows of its key wait for it. After the last attempt it becomes a dead
letter. A request to an unavailable receiver does not count as an attempt.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headgate.flow.publish.sinks.webhook.receiver import CONNECTIONS, Message, RequestOutcome

Post = Callable[[Message], RequestOutcome]
Bury = Callable[[Message, str, int], str | None]
"""Stores a dead letter. Returns why it cannot be stored; None if it is stored."""

LONGEST_PAUSE = 60.0  # seconds, whatever a receiver asks for
BUSY_FOR = 2 * LONGEST_PAUSE
"""A receiver that limits the rate of rows counts as unavailable once it has accepted no row for so
many seconds. Otherwise ``run --once`` would end at each limit, and the next run would send the rows
of the step from the first one again."""


def retry_pause(failures: int) -> float:
    """The pause in seconds after a number of consecutive failures."""
    return float(min(2.0 ** (failures - 1), LONGEST_PAUSE))


@dataclass(order=True)
class _Lane:
    """The rows of one key. ``ready`` is when the first one may be sent."""

    ready: float
    number: int
    messages: deque[Message] = field(compare=False)
    failures: int = field(default=0, compare=False)


class Delivery:
    """``waits`` returns the pause in seconds after a number of consecutive failures. The threads
    end once all rows are done, or at ``close``."""

    def __init__(
        self,
        messages: Iterable[Message],
        post: Post,
        bury: Bury,
        attempts: int,
        waits: Callable[[int], float] = retry_pause,
    ) -> None:
        self._post, self._bury, self._attempts, self._pause = post, bury, attempts, waits
        self._changed = threading.Condition()
        self._lanes = list(_lanes(messages))
        heapq.heapify(self._lanes)
        self._left = sum(len(lane.messages) for lane in self._lanes)
        self._away, self._away_until, self._why = 0, 0.0, ""
        self._is_busy, self._moved = False, time.monotonic()
        self._error: BaseException | None = None
        self._is_closed = False
        for number in range(min(CONNECTIONS, len(self._lanes))):
            threading.Thread(target=self._work, name=f"webhook-{number}", daemon=True).start()

    @property
    def why_away(self) -> str:
        """Why no row can be sent now, or no dead letter stored; empty if they can."""
        with self._changed:
            return self._why_away()

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds``, until all rows are done or the receiver is unavailable. Returns
        whether all rows are done. Raises the error that ended a thread."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._left == 0 or self._error or self._why_away(), seconds
            )
            if self._error is not None:
                raise self._error
            return self._left == 0

    def close(self) -> None:
        """Send no further row. Does not wait for requests that are under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _why_away(self) -> str:
        is_patient = self._is_busy and time.monotonic() < self._moved + BUSY_FOR
        return "" if is_patient else self._why

    def _work(self) -> None:
        try:
            while (lane := self._next()) is not None:
                self._settle(lane, self._post(lane.messages[0]))
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _next(self) -> _Lane | None:
        """Wait for a lane whose first row may be sent. Returns None if there is nothing more to
        do."""
        with self._changed:
            while not self._is_closed and self._left:
                now = time.monotonic()
                ready = self._lanes[0].ready if self._lanes else None
                if ready is not None and max(ready, self._away_until) <= now:
                    return heapq.heappop(self._lanes)
                until = None if ready is None else max(ready, self._away_until) - now
                self._changed.wait(until)
            return None

    def _settle(self, lane: _Lane, outcome: RequestOutcome) -> None:
        refused = lane.failures + 1
        if not outcome.taken and not outcome.is_away and refused >= self._attempts:
            kept = self._bury(lane.messages[0], outcome.why, refused)
            outcome = RequestOutcome() if kept is None else RequestOutcome(kept, is_away=True)
        with self._changed:
            now = time.monotonic()
            if outcome.is_away:
                if now >= self._away_until:  # else it is a request that began before the pause
                    self._away += 1
                wait = max(self._pause(self._away), min(outcome.wait, LONGEST_PAUSE))
                self._why, self._away_until = outcome.why, max(self._away_until, now + wait)
                self._is_busy = outcome.is_busy
                lane.ready = now  # after the others: this row may be the only one that waits
            else:
                self._away, self._why, self._away_until = 0, "", 0.0
            if outcome.taken:
                lane.messages.popleft()
                lane.failures, lane.ready = 0, now
                self._left, self._moved = self._left - 1, now
            elif not outcome.is_away:
                lane.failures, lane.ready = refused, now + self._pause(refused)
            if lane.messages:
                heapq.heappush(self._lanes, lane)
            self._changed.notify_all()


def _lanes(messages: Iterable[Message]) -> Iterable[_Lane]:
    by_key: dict[bytes, _Lane] = {}
    for number, message in enumerate(messages):
        if message.key is not None and message.key in by_key:
            by_key[message.key].messages.append(message)
            continue
        lane = _Lane(0.0, number, deque([message]))
        if message.key is not None:
            by_key[message.key] = lane
        yield lane
