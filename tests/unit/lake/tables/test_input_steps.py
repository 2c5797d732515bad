"""The steps of a table that reads several tables: each ends where the commits of all of them do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.lake.tables import input_steps
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.input_steps import InputTables
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS, Lake, silver

GOOD, OTHER = "silver/good", "silver/other"
SCHEMAS_OF_BOTH = {GOOD: SCHEMAS[GOOD], OTHER: SCHEMAS[GOOD]}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Steps are not grouped."""
    monkeypatch.setattr(input_steps, "ROWS_PER_STEP", 0)
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION.replace("gold:", "  other: {from: events}\ngold:"))
    return Lake(tmp_path / "lake", load(file), SCHEMAS_OF_BOTH)


def of_one_source(lake: Lake) -> InputTables:
    tables = {path: lake.table(path) for path in (GOOD, OTHER)}
    for table in tables.values():
        table.refresh()
    return InputTables(tables, ["events", "events"], None)


def commit(lake: Lake, path: str, *ends: int) -> None:
    """Commits with two rows each, up to these batch ids."""
    for end in ends:
        lake.commit(path, end, [silver(end), silver(100 + end)], {"silver": 2})


def steps(lake: Lake, after: int, upto: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """The batch id after each step, its rows, and how many files it has of each table."""
    found = of_one_source(lake).steps(after, {}, upto)
    return [(each.n, each.rows, tuple(len(files) for files in each.files)) for each in found]


def test_a_step_ends_where_all_tables_end(lake: Lake) -> None:
    commit(lake, GOOD, 1, 3, 4, 6)
    commit(lake, OTHER, 2, 3, 4, 5, 6)
    assert steps(lake, 0, 6) == [(3, 8, (2, 2)), (4, 4, (1, 1)), (6, 6, (1, 2))]
    assert steps(lake, 3, 6) == [(4, 4, (1, 1)), (6, 6, (1, 2))]
    assert steps(lake, 3, 4) == [(4, 4, (1, 1))]
    assert steps(lake, 6, 6) == []


def test_small_steps_are_grouped(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_steps, "ROWS_PER_STEP", 12)
    commit(lake, GOOD, 1, 2, 3, 4)
    commit(lake, OTHER, 1, 2, 3, 4)
    assert steps(lake, 0, 4) == [(3, 12, (3, 3)), (4, 4, (1, 1))]


def test_a_step_has_the_files_of_each_table_in_its_place(lake: Lake) -> None:
    commit(lake, GOOD, 1)
    commit(lake, OTHER, 1)
    (step,) = of_one_source(lake).steps(0, {}, 1)
    paths = [[file.path for file in files] for files in step.files]
    assert [lake.table(GOOD).storage.exists(path) for path in paths[0]] == [True]
    assert [lake.table(GOOD).storage.exists(path) for path in paths[1]] == [False]


def test_a_batch_that_is_missing_from_one_table_is_named(lake: Lake) -> None:
    commit(lake, GOOD, 1, 2)
    commit(lake, OTHER, 1)
    with pytest.raises(LogGapError, match="silver/other"):
        steps(lake, 0, 2)
