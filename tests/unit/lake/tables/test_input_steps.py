"""The steps of a table that reads several tables: each ends where the commits of all of them do."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.declaration.kinds import INPUTS
from headgate.declaration.load import load
from headgate.lake.tables import input_steps
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.input_steps import InputTables
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS, Lake, silver

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
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


LOG = INPUTS.path("a-b")


class OfTwoSources:
    """``good`` reads the source ``a``, ``other`` reads ``b``; both are read by an input log."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.log = Table(lake.layout.storage, LOG, pipeline="tiny")
        self.log.create(pa.schema([("at", pa.timestamp("us", "UTC"))]), "a-b", time_column="at")

    def say(self, a: int, b: int, watermark: int | None = None) -> None:
        state = self.log.refresh()
        payload = InputsPayload({"a": a, "b": b}, watermark)
        self.log.commit(state.advanced_to(state.n + 1, NOON, payload))

    @property
    def tables(self) -> InputTables:
        found = {path: self.lake.table(path) for path in (GOOD, OTHER)}
        return InputTables(found, ["a", "b"], self.log.reader())


@pytest.fixture
def two(lake: Lake) -> OfTwoSources:
    return OfTwoSources(lake)


def test_a_step_of_two_sources_ends_where_the_log_and_both_tables_do(two: OfTwoSources) -> None:
    commit(two.lake, GOOD, 1, 3, 4)
    commit(two.lake, OTHER, 2, 5)
    for a, b in ((1, 0), (2, 2), (3, 2), (3, 4), (4, 5)):
        two.say(a, b, 10 * a + b)
    found = [*two.tables.steps(0, {}, 5)]
    assert [(each.n, each.watermarks.event) for each in found] == [(1, 10), (3, 32), (5, 45)]
    assert [tuple(map(len, each.files)) for each in found] == [(1, 0), (1, 1), (1, 1)]
    assert found[1].watermarks.inputs == {"a": 3, "b": 2}
    (last,) = two.tables.steps(3, {"a": 3, "b": 2}, 5)
    assert (last.n, tuple(map(len, last.files))) == (5, (1, 1))
    assert two.tables.batch_ids(3, {"a": 3, "b": 2}) == {GOOD: 3, OTHER: 2}


def test_a_reader_goes_as_far_as_both_tables_are(two: OfTwoSources) -> None:
    assert two.tables.reached() == 0
    two.say(1, 1)
    assert two.tables.reached() == 0
    commit(two.lake, GOOD, 1)
    assert two.tables.reached() == 0
    commit(two.lake, OTHER, 1)
    assert two.tables.reached() == 1
    two.say(2, 1)
    two.say(3, 2)
    commit(two.lake, GOOD, 2)
    assert two.tables.reached() == 2
    # A step has passed batch 3, so the reader waits for the end of another one.
    commit(two.lake, GOOD, 4)
    commit(two.lake, OTHER, 2)
    assert two.tables.reached() == 2
    two.say(4, 2)
    assert two.tables.reached() == 4
