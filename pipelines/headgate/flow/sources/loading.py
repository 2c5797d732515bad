"""The request for a load of history, the source's plan of it, and the size of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headgate.flow.sources.micro_batches import next_limit

ALONE = timedelta(seconds=10)
"""How much longer than its fastest step a step of a load may take while the stream has no input.
Input that arrives then waits until the step has ended."""
SHARED = timedelta(seconds=2)
"""The same while the stream has input, or the load has a rate."""


@dataclass(frozen=True)
class LoadWanted:
    """The history that a person names: ``files`` is a pattern of paths, ``topics`` are topics or
    ranges of their partitions. Only files and records that were written in [begin, end) are loaded.
    Ranges of offsets are loaded as they are named."""

    files: str | None = None
    topics: Sequence[str] = ()
    begin: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class LoadPlan:
    """The load reads from the source's offsets ``begins`` to ``ends``. ``what`` describes the
    history in messages, ``unit`` is what offsets count. ``details`` are plain values that only the
    source uses."""

    begins: Mapping[str, int]
    ends: Mapping[str, int]
    what: str
    unit: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepBounds:
    """Bounds of a step, in bytes or records. ``most`` is that of the stream's batches. Steps begin
    with ``least`` while the stream has input, otherwise with ``first``."""

    least: int
    first: int
    most: int

    @staticmethod
    def within(least: int, first: int, most: int) -> StepBounds:
        return StepBounds(min(least, most), min(first, most), most)


def next_step(
    limit: int,
    taken: int,
    took: timedelta,
    fastest: timedelta,
    *,
    is_shared: bool,
    bounds: StepBounds,
) -> int:
    """The limit of the next step of a load, after one that read ``taken`` and ended for ``limit``.

    A step has a duration that does not depend on how much it reads, such as that of its commits; it
    is at most that of the ``fastest`` step so far. Smaller steps would not shorten it, but there
    would be more of them. So only the rest of the duration has a target.
    """
    target = SHARED if is_shared else ALONE
    rest = max(took - fastest, timedelta())
    return next_limit(
        *(limit, max(limit, taken), rest), target=target, lowest=bounds.least, highest=bounds.most
    )


class Steps:
    """The size of a load's steps. ``is_shared`` returns whether the stream has input: those steps
    have a limit of their own, so the first one after a quiet time is small."""

    def __init__(self, bounds: StepBounds, is_shared: Callable[[], bool]) -> None:
        self._bounds, self._is_shared = bounds, is_shared
        self._limits = {True: bounds.least, False: bounds.first}
        self._fastest = timedelta.max

    @property
    def limit(self) -> int:
        """How much the next step reads at most."""
        return self._limits[self._is_shared()]

    def took(self, took: timedelta, taken: int = 0) -> None:
        """Record the duration of a step that ended for the limit, and how much it read; a single
        file may be more than the limit."""
        self._fastest, is_shared = min(self._fastest, took), self._is_shared()
        self._limits[is_shared] = next_step(
            *(self.limit, taken, took, self._fastest), is_shared=is_shared, bounds=self._bounds
        )
