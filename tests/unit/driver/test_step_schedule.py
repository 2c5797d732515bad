"""When a step of a gold table is due: the decision alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from headgate.declaration.model import Step
from headgate.driver.step_schedule import StepSchedule, next_due

EVERY = timedelta(seconds=30)


@pytest.mark.parametrize(
    ("step", "took", "due"),
    [
        (EVERY, 4, 30),
        (EVERY, 40, 30),  # it is due when it ends
        ("auto", 4, 16),
        ("auto", 0, 0),
        ("auto", 200, 800),
        ("auto", 1000, 1600),  # the pause is 10 minutes
    ],
)
def test_the_next_step_is_due_after_an_interval_or_a_pause(
    step: Step, took: float, due: float
) -> None:
    assert next_due(step, 100, 100 + took) == 100 + due


def test_steps_take_a_fourth_of_the_time() -> None:
    at = worked = 0.0
    for took in (0.5, 3, 7, 2):
        worked, at = worked + took, next_due("auto", at, at + took)
    assert worked == at / 4


@dataclass
class Table:
    """A table whose steps take 2 seconds."""

    step: Step
    now: float = 50.0

    def __post_init__(self) -> None:
        self.schedule = StepSchedule(self.step, lambda: self.now)

    def take(self, *, is_level: bool = True) -> bool:
        def step() -> bool:
            self.now += 2
            return is_level

        return self.schedule.take(step)

    def due_after(self, most: int = 1000) -> int | None:
        """In how many seconds a step is due; None if it is not within ``most``."""
        now = self.now
        for seconds in range(most):
            self.now = now + seconds
            if self.schedule.is_due:
                return seconds
        return None


@pytest.mark.parametrize(("step", "due"), [(EVERY, 28), ("auto", 6)])
def test_the_first_step_is_due_at_once_and_the_others_as_declared(step: Step, due: int) -> None:
    table = Table(step)
    assert table.due_after() == 0
    for _ in range(3):
        assert table.take()
        assert table.due_after() == due


@pytest.mark.parametrize("step", [EVERY, "auto"])
def test_a_table_that_is_not_up_to_date_goes_on_at_once(step: Step) -> None:
    """It is far behind, or its gate holds it: then the gate decides when it is tried again. The
    step that failed may have been asked for before it was due."""
    table = Table(step)
    table.take()
    assert not table.schedule.is_due
    assert not table.take(is_level=False)
    assert table.due_after() == 0


def test_a_step_that_fails_is_due_again() -> None:
    table = Table(EVERY)
    table.take()

    def fail() -> bool:
        raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        table.schedule.take(fail)
    assert table.due_after() == 0


def test_a_step_that_comes_early_moves_the_next_one() -> None:
    """For an operation, for example."""
    table = Table(EVERY)
    table.take()
    table.now += 10
    table.take()
    assert table.due_after() == 28
