"""A commit whose files have other rows than it states is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from headgate.declaration.kinds import INPUTS, KINDS, PUBLICATION, Kind
from headgate.exit_codes import MEANINGS
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import MiscountedError
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_counts import (
    Miscounted,
    covers,
    miscounted,
    require_all,
    require_side_rows,
)
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import Open, file

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
OPEN, FINAL = file("open"), file("final", final=True)
Rows = Mapping[str, int]


@pytest.fixture
def any_counts() -> None:
    """Here commits must state what their files have."""


@pytest.mark.parametrize(
    ("before", "after", "added", "removed", "wrong"),
    [
        ({"row": 5}, {"row": 8}, {"row": 3}, {}, []),
        ({"row": 5}, {"row": 8}, {"row": 2}, {}, [("row", 2, 3)]),
        ({"row": 5}, {"row": 8}, {"row": 6}, {}, [("row", 6, 3)]),
        ({"row": 5}, {"row": 8}, {}, {}, [("row", 0, 3)]),
        ({"row": 5}, {"row": 5}, {}, {}, []),
        ({"row": 5}, {"row": 5}, {"row": 4}, {"row": 4}, []),
        ({"row": 5}, {"row": 5}, {"row": 3}, {"row": 4}, [("row", 3, 4)]),
        ({"row": 5}, {"row": 2}, {}, {"row": 3}, []),
        (
            {"open row": 4, "final row": 7},
            {"open row": 3, "final row": 9},
            {"open row": 3, "final row": 2},
            {"open row": 4},
            [],
        ),
        (
            {"open row": 4, "final row": 7},
            {"open row": 3, "final row": 9},
            {"open row": 2, "final row": 3},
            {"open row": 4},
            [("open row", 2, 3), ("final row", 3, 2)],
        ),
        ({"row": 5}, {"row": 5}, {"row": 4}, {"row": 5}, [("row", 4, 5)]),
        # Not known before: the commit replaces all of them.
        ({}, {"open row": 3}, {"open row": 3}, {"open row": 4}, []),
        ({}, {"open row": 3}, {"open row": 2}, {"open row": 4}, [("open row", 2, 3)]),
        ({"open row": 4}, {}, {"open row": 9}, {}, []),
    ],
)
def test_a_commit_adds_the_rows_that_it_states(
    before: Rows, after: Rows, added: Rows, removed: Rows, wrong: list[tuple[str, int, int]]
) -> None:
    found = miscounted(before, after, added, removed)
    assert list(found) == [Miscounted(*each) for each in wrong]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_of_table_states_its_rows(kind: Kind) -> None:
    """The counts of other tables are not taken for its own."""
    state = replace(State.empty(kind.path("t")), total={"other": 5, kind.counted_as or "": 3})
    has_rows = kind not in (PUBLICATION, INPUTS)
    assert list(state.rows(kind.path("t")).values()) == ([3] if has_rows else [])


def test_gold_states_open_and_final_rows() -> None:
    state = State(GoldPayload(open=4), total={"final": 7})
    assert state.rows("gold/t") == {"final row": 7, "open row": 4}


def test_a_side_table_covers_what_was_counted_for_it() -> None:
    assert covers(5, 0, 4, 3)
    assert covers(2, 3, 4, 3)
    assert not covers(4, 2, 4, 3)


def test_what_a_side_table_lacks_is_named() -> None:
    main = replace(State.empty("gold/t"), n=4, total={"late": 3})
    side = replace(State.empty("late/t"), n=4, total={"late": 2})
    with pytest.raises(MiscountedError) as refused:
        require_side_rows("gold/t", main, "late", "late/t", side)
    assert "batch 4 was refused: late/t would have 2 rows, and 3 were" in refused.value.message
    require_side_rows("gold/t", main, "late", "late/t", replace(side, total={"late": 3}))
    require_side_rows("gold/t", main, "late", "late/t", replace(side, n=5))


def test_what_was_not_read_is_named() -> None:
    state = replace(State.empty("silver/t"), n=4)
    require_all("silver/t", state, 3, 3, "rows")
    with pytest.raises(MiscountedError, match=r"batch 4 was refused: 2 of 3 rows of bronze"):
        require_all("silver/t", state, 2, 3, "rows of bronze were counted")


def commit(
    table: Table, opened: int, final: int, *add: DataFile, remove: tuple[DataFile, ...]
) -> State:
    held = table.refresh()
    payload = replace(GoldPayload.of(held), open=opened)
    state = held.advanced_to(held.n + 1, NOW, payload).counting({"final": final})
    return table.commit(state, add=add, remove=remove)


def test_the_commit_is_refused_before_anything_is_written(open_table: Open) -> None:
    table = open_table()
    table.fence(1)
    commit(table, 1, 1, OPEN, FINAL, remove=())
    before = table.refresh(), table.version
    for opened, final, add, says in (
        (1, 1, (file("open2"),), "its new files have 0 final rows, and 1 were counted"),
        (1, 1, (file("final2", final=True),), "its new files have 0 open rows, and 1 were counted"),
        (1, 0, (file("a"), file("b")), "its new files have 2 open rows, and 1 were counted"),
    ):
        with pytest.raises(MiscountedError, match=says) as refused:
            commit(table, opened, final, *add, remove=(OPEN,))
        assert "gold/t: the commit of batch 2 was refused" in refused.value.message
        assert "headgate start" in str(refused.value)
        assert "lost a file" in MEANINGS[refused.value.exit_code]
        assert (table.refresh(), table.version) == before
    commit(table, 0, 1, file("final2", final=True), remove=(OPEN,))
    assert table.refresh().n == 2


def test_a_reset_states_files_and_no_counts(open_table: Open) -> None:
    table = open_table()
    table.fence(1)
    commit(table, 1, 1, OPEN, FINAL, remove=())
    table.refresh()
    emptied = State(GoldPayload(), kind="reset", generation=1, definition="digest")
    table.commit(emptied)
    assert table.refresh().rows("gold/t") == {"final row": 0}
