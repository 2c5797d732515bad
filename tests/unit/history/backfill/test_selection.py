"""Which part of bronze is read, and in which steps."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.history.backfill.errors import NotBackfilledError
from headgate.history.backfill.selection import (
    Range,
    drains_of,
    published_into,
    steps,
)
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.payloads.gold import GoldPayload

PATH = "gold/sales"


def file(n: int, merged_from: int | None = None) -> DataFile:
    name = "part-0" if merged_from is None else f"merged-{merged_from}"
    return DataFile(f"data/0-{n}-abc/{name}.parquet", 1, 1, "", {})


def drains(*numbers: int) -> list[Operation]:
    return [Operation(number, "drain", 10 * number, {}) for number in numbers]


def test_a_range_ends_before_its_end() -> None:
    assert Range(100, 200).spans == ((100, 199),)


def test_no_step_passes_an_end_and_none_is_empty() -> None:
    files = [file(n) for n in (1, 2, 3, 5, 9, 11)]
    found = steps(files, {2, 4, 8, 10})
    assert [(s.after, s.upto, [f.n for f in s.files]) for s in found] == [
        (0, 2, [1, 2]),
        (2, 4, [3]),
        (4, 8, [5]),
        (8, 10, [9]),
    ]
    assert steps([file(5)], {2, 8}) == steps([file(5)], {8})


def test_a_merged_file_is_on_one_side_of_an_end() -> None:
    assert [s.upto for s in steps([file(4, merged_from=3)], {2, 4})] == [4]
    with pytest.raises(NotBackfilledError, match="across batch 3"):
        steps([file(4, merged_from=3)], {3, 4})


def test_each_drain_has_its_batch_and_its_end() -> None:
    held = GoldPayload(closed_through=90, drains={"2": 50, "5": 90})
    assert drains_of(held, drains(1, 2, 5)) == ((20, 50), (50, 90))
    assert drains_of(GoldPayload(), drains(1)) == ()


def test_backfills_that_touch_the_range_are_named_unless_they_were_taken_back() -> None:
    def published(id_: str, span: list[int], table: str = "sales", **more: Any) -> Operation:
        return Operation(
            1, "backfill", 1, {"backfill": id_, "tables": {table: {"span": span}}, **more}
        )

    asked = [
        published("inside", [100, 150]),
        published("before", [0, 99]),
        published("after", [200, 300]),
        published("other", [100, 150], "visits"),
        published("back", [100, 150], taken_back="savepoint"),
        published("rejected", [100, 150], rejected={"sales": {}}),
        Operation(2, "drain", 2, {}),
    ]
    assert published_into(Range(100, 200), "sales", asked) == ("inside",)
    assert published_into(Range(120, 120), "sales", asked) == (), "an empty range"
