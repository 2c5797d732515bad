"""Which copies take the place of rejected rows: item by item."""

from __future__ import annotations

from headgate.flow.silver.copies import Copy, Earlier, candidates, first_copies
from headgate.lake.tables.replay import RecordPosition


def copy(offset: int, item: int | None, corrects: int | None = None, id_: str = "a") -> Copy:
    of = None if corrects is None else RecordPosition(0, corrects)
    partition = 0 if of is None else -1
    return Copy(id_, RecordPosition(partition, offset), 7, of, item)


def test_a_record_is_a_candidate_if_one_of_its_items_may_be_one() -> None:
    rejected = Earlier(10, [copy(1, 2), copy(1, 4)])
    assert [*candidates([copy(5, None)], rejected)] == [copy(5, None)]
    items = [copy(5, item) for item in range(6)]
    assert [*candidates(items, rejected)] == [copy(5, 2), copy(5, 4)]
    assert [*candidates([copy(5, None, id_="b")], rejected)] == []


def test_a_correction_is_one_of_the_items_that_were_rejected() -> None:
    rejected = Earlier(None, [copy(1, 2)])
    assert [*candidates([copy(0, None, corrects=1)], rejected)] == [copy(0, None, corrects=1)]
    items = [copy(0, item, corrects=1, id_="other") for item in range(4)]
    assert [*candidates(items, rejected)] == [items[2]]
    assert [*candidates([copy(0, 2, corrects=3)], rejected)] == []


def test_the_first_copy_of_each_item_is_taken() -> None:
    kept = Earlier(10, [copy(1, 0)])
    passed = [copy(9, 1), copy(8, 1), copy(8, 0), copy(9, 3)]
    assert [*first_copies(passed, kept)] == [copy(8, 1), copy(9, 3)]
