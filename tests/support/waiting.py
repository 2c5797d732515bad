"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], what: str, patience: float, every: float = 0.05
) -> None:
    """Wait until the condition holds. Fails with ``what`` after ``patience`` seconds. ``every`` is
    the time between checks in seconds; it should be longer if a check takes more than
    milliseconds."""
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(every)
