"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], what: str, patience: float, every: float = 0.05
) -> None:
    """Until the condition holds. Fails after ``patience`` seconds, saying ``what``. ``every`` is in
    seconds; let it be longer where a look costs more than milliseconds."""
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(every)
