"""Work on independent tables at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")

# One thread in addition to the stream's thread. It is kept until the process ends, because each
# Python thread is bound to a JVM thread.
_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="beside")


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of some calls, in order. An error of a call is raised after all have ended.

    While one call writes its rows, Spark plans the query of another: planning takes most of the
    time of a small batch. A call must not use this function.
    """
    pending = [_BESIDE.submit(call) for call in calls[1::2]]
    try:
        done = [call() for call in calls[::2]]
    finally:
        wait(pending)
    beside = [each.result() for each in pending]
    return [(beside if place % 2 else done)[place // 2] for place in range(len(calls))]
