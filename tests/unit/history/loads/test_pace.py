"""When a load may go on: the stream comes first."""

from __future__ import annotations

import pytest

from headgate.history.loads.pace import Step, may_begin

STEP = Step(began=100, ended=104, rows=2_000)


@pytest.mark.parametrize(
    ("now", "share", "rate", "has_input", "expected"),
    [
        (104, 0.5, None, False, True),  # the stream has no input
        (104, 0.5, None, True, False),
        (107.9, 0.5, None, True, False),
        (108, 0.5, None, True, True),  # it waits as long as the step took
        (115.9, 0.25, None, True, False),
        (116, 0.25, None, True, True),
        (104, 1.0, None, True, True),
        (104, 0.5, 100, False, False),  # 2,000 records take 20 seconds
        (119.9, 0.5, 100, False, False),
        (120, 0.5, 100, False, True),
    ],
)
def test_it_waits_for_its_share_and_its_rate(
    now: float, share: float, rate: int | None, has_input: bool, expected: bool
) -> None:
    assert may_begin(now, STEP, share=share, rate=rate, has_input=has_input) == expected


def test_the_first_step_waits_for_nothing() -> None:
    assert may_begin(0, None, share=0.01, rate=1, has_input=True)
