"""The account of a join, whose rows come from two silver tables, and its final hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.history.savepoints.declarations import keep_declaration
from headgate.insight.final_periods.periods import HOUR
from headgate.insight.final_periods.progress import TableVersion
from headgate.insight.final_periods.rows import FinalRows
from headgate.insight.ledger import balance, deployed
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from tests.unit.insight.ledger.conftest import (
    DECLARATION,
    NOON,
    SCHEMAS,
    TIME,
    Lake,
    bronze,
    silver,
)

JOIN = """
  other: {from: events}
gold:
  pairs:
    join: {left: good, right: other, on: [id], within: 1 minute}
    columns: {id: good.id}
    allowed_lateness: 0 seconds
"""
TEXT = DECLARATION[: DECLARATION.index("gold:")].rstrip() + JOIN
OF_JOIN: Mapping[str, list[tuple[str, pa.DataType]]] = {
    **{p: each for p, each in SCHEMAS.items() if not p.endswith("per_minute")},
    "silver/other": SCHEMAS["silver/good"],
    "late/pairs": [("input", pa.string()), *SCHEMAS["late/per_minute"]],
    "gold/pairs": [("event_time", TIME), ("row_id", pa.string()), ("time", TIME)],
}
ROWS = ("a", "b")


@pytest.fixture
def empty(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(TEXT)
    return Lake(tmp_path / "lake", load(file), OF_JOIN)


def fill(
    lake: Lake,
    late: tuple[tuple[str, int], ...] = (("good", 2), ("other", 0)),
    rows: tuple[str, ...] = ROWS,
    **counts: int,
) -> Lake:
    """One batch in every table. Silver tables have rows of their own; two rows are late."""
    lake.commit("bronze/events", 1, [bronze(n) for n in range(3)], {"read": 3, "duplicate": 0})
    lake.commit("quarantine/events", 1, [], {"quarantined": 0})
    counted = {"quarantined": 0, "duplicate": 0}
    good = {**counted, "silver": 2, "filtered": 1}
    lake.commit("silver/good", 1, [silver(1), silver(2)], good)
    other = {**counted, "silver": 3, "filtered": 0}
    lake.commit("silver/other", 1, [silver(n) for n in range(3)], other)
    waiting = [{**silver(n), "input": name} for name, n in late]
    lake.commit("late/pairs", 1, waiting, {"late": len(waiting)})
    gold = {"pairs": 5, "folded": 3, "late": 2, "final": len(rows), **counts}
    lake.commit("gold/pairs", 1, [{"event_time": NOON, "row_id": id_} for id_ in rows], gold)
    return lake


def test_the_rows_of_both_tables_are_counted(empty: Lake) -> None:
    account = balance(fill(empty).layout, empty.pipeline)
    assert account.differences == ()
    (gold,) = account.gold
    assert (gold.silver, gold.pairs, gold.folded, gold.late) == ("good, other", 5, 3, 2)
    assert by_id(empty.layout, empty.pipeline).findings == ()


@pytest.mark.parametrize(
    ("counts", "law"),
    [
        ({"pairs": 4, "folded": 2}, "pairs = silver rows × windows a row"),
        ({"folded": 4}, "pairs = folded + late"),
        ({"final": 3}, "final rows = rows of its final files"),
    ],
)
def test_a_join_that_counted_wrongly(empty: Lake, counts: dict[str, int], law: str) -> None:
    fill(empty, (("good", 2), ("other", 0)), ROWS, **counts)
    found = balance(empty.layout, empty.pipeline).differences
    assert law in [each.law for each in found]


@pytest.mark.parametrize(
    ("wrong", "table", "problem", "offsets"),
    [
        # Only the other table has this row.
        (
            {"late": (("good", 0), ("other", 1))},
            "late/pairs",
            "pairs of rows that silver lacks",
            [0],
        ),
        (
            {"late": (("good", 1), ("other", 7))},
            "late/pairs",
            "pairs of rows that silver lacks",
            [7],
        ),
        ({"late": (("good", 1), ("good", 1))}, "late/pairs", "pairs more than once", [1]),
        ({"rows": ("a", "a")}, "gold/pairs", "results more than once", []),
    ],
)
def test_a_row_in_the_wrong_place_is_named(
    empty: Lake, wrong: dict[str, Any], table: str, problem: str, offsets: list[int]
) -> None:
    (found,) = by_id(fill(empty, **wrong).layout, empty.pipeline).findings
    assert (found.table, found.problem) == (table, problem)
    assert [each["offset"] for each in found.examples] == offsets


def test_one_row_may_be_late_in_both_tables(empty: Lake) -> None:
    fill(empty, late=(("good", 1), ("other", 1)))
    assert by_id(empty.layout, empty.pipeline).findings == ()


def test_a_join_without_one_of_its_tables_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(TEXT)
    schemas = {path: each for path, each in OF_JOIN.items() if path != "silver/other"}
    lake = Lake(tmp_path / "lake", load(file), schemas)
    assert deployed(lake.layout, lake.pipeline).gold == {}
    assert [*deployed(lake.layout, lake.pipeline).silver] == ["good"]


def hours(*numbers: int) -> list[datetime]:
    midnight = NOON.replace(hour=0)
    return [midnight + timedelta(hours=number) for number in numbers]


def test_a_row_is_in_the_hour_of_its_time(empty: Lake) -> None:
    """Also a row at the very begin of an hour: it is a moment, not the end of a window."""
    keep_declaration(empty.layout, empty.pipeline)
    times = [NOON, NOON + timedelta(minutes=59), NOON + timedelta(hours=2)]
    table, rows = empty.table("gold/pairs"), FinalRows(empty.layout, empty.pipeline, "pairs")
    empty.commit(
        "gold/pairs",
        1,
        [{"event_time": time, "row_id": str(n)} for n, time in enumerate(times)],
        {"pairs": 3, "folded": 3, "late": 0, "final": 3},
    )
    watermark = commit_time(NOON + timedelta(hours=3))
    table.commit(table.refresh().advanced_to(2, NOON, GoldPayload(watermark)))
    newest = rows.position()
    assert newest is not None
    assert newest.time == NOON + timedelta(hours=3)

    def due(before: datetime) -> list[datetime]:
        then: TableVersion = replace(newest, final_up_to=before.isoformat())
        return list(rows.due(HOUR, then, newest))

    assert due(NOON) == hours(12, 14)
    assert due(NOON + timedelta(hours=1)) == hours(14)
    assert due(NOON + timedelta(hours=2)) == hours(14)
