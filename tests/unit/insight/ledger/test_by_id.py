"""The accounting law proved from the tables, event by event."""

from __future__ import annotations

import pytest

from headgate.insight.ledger.by_id import Discrepancy, by_id
from tests.unit.insight.ledger.conftest import Lake, fill


def findings(lake: Lake) -> list[Discrepancy]:
    return list(by_id(lake.layout, lake.pipeline).findings)


def test_a_balanced_lake_holds(lake: Lake) -> None:
    proof = by_id(lake.layout, lake.pipeline)
    assert proof.holds
    assert proof.rows == 7


def test_a_missing_event_is_named(empty_lake: Lake) -> None:
    fill(empty_lake, silver_rows=(3, 5))
    (found,) = findings(empty_lake)
    assert found.table == "silver/good"
    assert "1 were filtered" in found.problem
    assert found.count == 2  # the filtered and the lost event cannot be told apart
    assert [e["event_id"] for e in found.examples] == ["e0", "e4"]


def test_without_a_where_nothing_may_be_missing(empty_lake: Lake) -> None:
    """Without ``where``, a count of filtered rows in a commit proves nothing."""
    from dataclasses import replace

    fill(empty_lake)
    declared = empty_lake.pipeline
    silver = {"good": replace(declared.silver["good"], where=None)}
    proof = by_id(empty_lake.layout, replace(declared, silver=silver))
    assert [(f.count, f.examples[0]["event_id"]) for f in proof.findings] == [(1, "e0")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "table", "problem", "offsets"),
    [
        ({"silver_rows": (3, 4, 5, 5)}, "silver/good", "rows more than once", [5]),
        (
            {"silver_rows": (0, 3, 4, 5, 2)},
            "silver/good",
            "rows without a valid record in bronze",
            [2],
        ),
        (
            {"silver_rows": (3, 4, 5, 9)},
            "silver/good",
            "rows without a valid record in bronze",
            [9],
        ),
        ({"quarantine_rows": ()}, "quarantine/events", "invalid records that are missing", [1]),
        (
            {"quarantine_rows": (1, 3)},
            "quarantine/events",
            "rows without an invalid record in bronze",
            [3],
        ),
        ({"quarantine_rows": (1, 1)}, "quarantine/events", "rows more than once", [1]),
        ({"late_rows": (5, 5)}, "late/per_minute", "pairs more than once", [5]),
        ({"late_rows": (1,)}, "late/per_minute", "pairs of rows that silver lacks", [1]),
    ],
)
def test_a_row_in_the_wrong_place_is_named(
    empty_lake: Lake,
    wrong: dict[str, tuple[int, ...]],
    table: str,
    problem: str,
    offsets: list[int],
) -> None:
    fill(empty_lake, **wrong)
    found = {(f.table, f.problem): [e["offset"] for e in f.examples] for f in findings(empty_lake)}
    assert found[(table, problem)] == offsets


def test_windows_that_count_other_than_was_folded(empty_lake: Lake) -> None:
    fill(empty_lake, counted=3)
    (found,) = findings(empty_lake)
    assert (found.table, found.count) == ("gold/per_minute", 1)
    assert "2 pairs were folded" in found.problem


def test_only_the_first_of_many_are_listed(empty_lake: Lake) -> None:
    fill(empty_lake, silver_rows=(3, 4, 5, *range(100, 150)))
    (found,) = findings(empty_lake)
    assert found.count == 50
    assert [e["offset"] for e in found.examples] == list(range(100, 120))
