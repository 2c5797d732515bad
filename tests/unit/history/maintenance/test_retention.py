"""Which files are kept, and how far a log is trimmed: the decisions only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.history.maintenance.retention import (
    WORTH_A_CHECKPOINT,
    BatchRange,
    KeepReason,
    TableNeeds,
    trim_log,
)
from headgate.lake.tables.log import LogFolder

SINCE = datetime(2026, 5, 4, 12, tzinfo=UTC)
OLD = SINCE - timedelta(seconds=1)
PATH = "data/1-5-abc/part-0.parquet"


def needs(**more: object) -> TableNeeds:
    return TableNeeds(since=SINCE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (needs(live={PATH}), "live"),
        (needs(batches=[BatchRange(1, 1, 4)]), "batches"),
        (needs(unpublished={PATH}), "unpublished"),
        (needs(ledger={PATH}), "ledger"),
        (needs(recent={PATH}), "recent"),
        (needs(saved={PATH}), "savepoints"),
        (needs(saved={PATH}, recent={PATH}, live={PATH}), "live"),
        (needs(), None),
        (needs(batches=[BatchRange(1, 1, 5)]), None),
        (needs(batches=[BatchRange(2, 3, 0), BatchRange(0, 0, 0)]), None),
        (needs(live={"data/1-5-abc/part-1.parquet"}), None),
    ],
)
def test_a_file_is_kept_for_the_first_reason_that_holds(
    of: TableNeeds, reason: KeepReason | None
) -> None:
    assert of.reason(PATH, OLD) == reason


def test_what_was_written_just_now_is_left_alone() -> None:
    assert needs().reason(PATH, SINCE) == "recent"
    assert needs().reason("data/nobody knows", SINCE) == "recent"
    assert needs().reason("data/nobody knows", OLD) is None


def test_a_checksum_file_stays_with_its_file() -> None:
    assert needs(live={PATH}).reason("data/1-5-abc/.part-0.parquet.crc", OLD) == "live"
    assert needs(live={PATH}).reason("data/1-5-abc/.part-1.parquet.crc", OLD) is None


def folder(upto: int, *checkpoints: int, oldest: int = 0) -> LogFolder:
    return LogFolder(tuple(range(oldest, upto + 1)), checkpoints, ())


def test_batches_are_told_by_generation_and_number() -> None:
    batches = BatchRange(1, 2, 7)
    assert [batches.has(g, 8) for g in range(4)] == [False, True, True, False]
    assert not batches.has(1, 7)


def test_a_log_is_cut_off_at_a_checkpoint_with_another_one_behind_it() -> None:
    found = trim_log(folder(350, 99, 199, 299), {"position": 340, "batches": 230})
    assert (found.to, found.checkpoint, found.why) == (199, None, "batches")


def test_a_checkpoint_is_made_where_it_is_worth_it() -> None:
    found = trim_log(folder(400, 99, 199), {"position": 390})
    assert (found.to, found.checkpoint, found.why) == (199, 390, "checkpoints")
    found = trim_log(folder(400, 99, 199), {"position": 199 + WORTH_A_CHECKPOINT - 1})
    assert (found.to, found.checkpoint) == (99, None)


def test_one_checkpoint_alone_is_never_relied_on() -> None:
    found = trim_log(folder(120, 99), {"position": 110})
    assert (found.to, found.checkpoint, found.why) == (0, None, "checkpoints")
    found = trim_log(folder(160), {"position": 150})
    assert (found.to, found.checkpoint) == (0, 150)


def test_nothing_goes_where_all_is_needed() -> None:
    found = trim_log(folder(350, 99, 199, 299), {"position": 340, "savepoints": 3})
    assert (found.to, found.checkpoint, found.why) == (0, None, "savepoints")


LOGS = st.builds(
    lambda oldest, more, checkpoints: LogFolder(
        tuple(range(oldest, oldest + more)),
        tuple(sorted({c for c in checkpoints if c < oldest + more} | ({oldest} - {0}))),
        (),
    ),
    st.integers(0, 100),
    st.integers(1, 300),
    st.sets(st.integers(0, 400), max_size=4),
)


@given(LOGS, st.data())
def test_a_trimmed_log_gives_all_that_is_needed(log: LogFolder, data: st.DataObject) -> None:
    versions = st.integers(log.entries[0], log.entries[-1])
    needed = {"position": data.draw(versions), "savepoints": data.draw(versions)}
    found = trim_log(log, needed)  # type: ignore[arg-type]
    lowest = min(needed.values())
    assert found.to <= lowest
    made = {*log.checkpoints}
    if found.checkpoint is not None:
        made.add(found.checkpoint)
    if found.to > log.oldest:
        assert found.to in made
        assert any(c > found.to for c in made)
    # A second run has nothing to do.
    left = LogFolder(
        tuple(v for v in log.entries if v >= found.to),
        tuple(sorted(c for c in made if c >= found.to)),
        (),
    )
    again = trim_log(left, needed)  # type: ignore[arg-type]
    assert (again.to, again.checkpoint) == (max(found.to, log.oldest), None)
