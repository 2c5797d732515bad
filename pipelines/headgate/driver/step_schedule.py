"""When a gold table takes its next step.

The rows of a table do not depend on its steps, so a table whose work for each step is large may
take them at intervals: it then folds all batches since the last one at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headgate.declaration.model import LONGEST_PAUSE, Step

PAUSE = 3
"""With ``auto``, the pause after a step is this many times the duration of the step: so steps take
a fourth of the time."""


def next_due(step: Step, began: float, ended: float) -> float:
    """When a step is due after one that began and ended at two times, all in seconds."""
    if isinstance(step, timedelta):
        return began + step.total_seconds()
    return ended + min(PAUSE * (ended - began), LONGEST_PAUSE.total_seconds())


class StepSchedule:
    """When one table takes its steps; the first one is due at once. ``clock`` is in seconds and
    never goes back."""

    def __init__(self, step: Step, clock: Callable[[], float] = time.monotonic) -> None:
        self._step, self._clock = step, clock
        self._due = clock()

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._due

    def take(self, step: Callable[[], bool]) -> bool:
        """Call ``step``, and return what it returns: whether the table is up to date now. If it is
        not, because it is far behind or its gate holds it, the next step is due at once."""
        began = self._due = self._clock()
        if is_level := step():
            self._due = next_due(self._step, began, self._clock())
        return is_level
