"""Which watermark the tables have that read several sources."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from headgate.flow.bronze.input_log import payload_after
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.state import State


def bronze(n: int, watermark: int | None) -> State:
    return State(BronzePayload(watermark=watermark, arrival_watermark=watermark), n=n)


@pytest.mark.parametrize(
    ("a", "b", "idle", "watermark", "holds"),
    [
        (30, 20, (), 20, "b"),
        (30, None, (), 7, "b"),
        (None, None, (), 7, "a"),
        (5, 6, (), 7, "a"),
        (30, 20, ("b",), 30, "a"),
        (30, None, ("b",), 30, "a"),
        (30, 20, ("a", "b"), 7, ""),
    ],
)
def test_it_is_the_lowest_of_those_that_are_not_idle(
    a: int | None, b: int | None, idle: Collection[str], watermark: int, holds: str
) -> None:
    held = InputsPayload({"a": 1}, 7, 7)
    found = payload_after(held, {"a": bronze(3, a), "b": bronze(4, b)}, idle)
    assert found == InputsPayload({"a": 3, "b": 4}, watermark, watermark, holds)


def test_there_is_none_before_each_source_has_one() -> None:
    found = payload_after(InputsPayload(), {"a": bronze(1, 5), "b": bronze(0, None)}, ())
    assert (found.watermark, found.holds) == (None, "b")
