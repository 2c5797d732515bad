"""Which copies take the place of rejected rows depends on the log alone, not on the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.silver.copies import Copy, Earlier, candidates, first_copies
from headgate.lake.tables.replay import RecordPosition

WITHIN = 10


@dataclass(frozen=True)
class Sent:
    """A valid record; ``passes`` says whether it meets the rules."""

    id: str
    time: int
    passes: bool


SENT = st.builds(
    Sent,
    # Few ids and times, so that copies meet: exactly within reach, and just out of it.
    st.sampled_from("aab"),
    st.sampled_from([0, 5, 10, 15, 20, 21]),
    st.booleans(),
)


def placed(log: Sequence[Sent]) -> list[tuple[Copy, bool, bool]]:
    """Each record, whether it is a duplicate in bronze, and whether it meets the rules."""
    rows: list[tuple[Copy, bool, bool]] = []
    for offset, each in enumerate(log):
        earlier = (row for row, _, _ in rows if row.id == each.id)
        is_duplicate = any(abs(row.time - each.time) <= WITHIN for row in earlier)
        copy = Copy(each.id, RecordPosition(0, offset), each.time)
        rows.append((copy, is_duplicate, each.passes))
    return rows


def oracle(log: Sequence[Sent]) -> set[int]:
    """The offsets in silver, computed record by record."""
    silver: list[Copy] = []
    rejected: list[Copy] = []
    for row, is_duplicate, passes in placed(log):
        reaches = [r for r in rejected if r.id == row.id and abs(r.time - row.time) <= WITHIN]
        known = [s for s in silver if s.id == row.id and abs(s.time - row.time) <= WITHIN]
        if is_duplicate and (known or not reaches):
            continue
        if passes:
            silver.append(row)
        elif not is_duplicate:
            rejected.append(row)
    return {row.position.offset for row in silver}


def stepwise(log: Sequence[Sent], ends: Sequence[int]) -> set[int]:
    """The same, in steps that end at ``ends``, as the stage does it."""
    rows, silver, rejected = placed(log), list[Copy](), list[Copy]()
    for first, last in zip([0, *ends], [*ends, len(rows)], strict=True):
        step = rows[first:last]
        kept = [row for row, is_duplicate, passes in step if passes and not is_duplicate]
        apart = [row for row, is_duplicate, passes in step if not passes and not is_duplicate]
        duplicates = [row for row, is_duplicate, _ in step if is_duplicate]
        good = {row.position for row, _, passes in step if passes}
        found = candidates(duplicates, Earlier(WITHIN, [*rejected, *apart]))
        passed = (row for row in found if row.position in good)
        taken = first_copies(passed, Earlier(WITHIN, [*silver, *kept]))
        silver += [*kept, *taken]
        rejected += apart
    return {row.position.offset for row in silver}


@given(st.lists(SENT, min_size=5, max_size=12), st.sets(st.integers(0, 12), max_size=4))
def test_steps_of_any_size_take_the_same_copies(log: list[Sent], cuts: set[int]) -> None:
    ends = sorted(min(cut, len(log)) for cut in cuts)
    assert stepwise(log, ends) == oracle(log)


def test_a_replay_belongs_to_the_log_of_what_it_corrects() -> None:
    known = Earlier(WITHIN, [Copy("a", RecordPosition(1, 7), 0)])
    assert known.has_copy_of(Copy("a", RecordPosition(~1, 0), 5))
    assert not known.has_copy_of(Copy("a", RecordPosition(0, 9), 5))
    assert not known.has_copy_of(Copy("a", RecordPosition(~0, 0), 5))


def test_without_a_rule_for_duplicates_only_a_replay_takes_a_place() -> None:
    rejected = Earlier(None, [Copy("a", RecordPosition(0, 7), 0)])
    sent = Copy("a", RecordPosition(0, 8), 0)
    corrected = Copy("a", RecordPosition(~0, 0), 0, corrects=RecordPosition(0, 7))
    assert [*candidates([sent, corrected], rejected)] == [corrected]
