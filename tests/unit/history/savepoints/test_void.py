"""Which operations are in force after a reset."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.history.savepoints.resets import (
    BatchIdentity,
    ResetIntent,
    void_after_loss,
    void_after_restore,
)
from headgate.lake.storage.documents import encoded
from headgate.lake.tables.decisions import (
    AMENDMENT,
    REPLAY,
    RESET,
    Decision,
    Decisions,
    SourcePosition,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ONE, TWO = ("events",), ("orders", "clicks")


class History:
    """Decisions, each at a batch id that is the same for all sources."""

    def __init__(self, *sources: str) -> None:
        self.sources = sources
        self.rows: list[Decision] = []

    def decide(self, kind: str = "drain", n: int = 1, **document: object) -> int:
        """Returns the number of the decision."""
        position = {source: SourcePosition(n) for source in self.sources}
        self.rows.append(Decision(len(self.rows) + 1, kind, position, document, NOON))
        return len(self.rows)

    def reset(self, void: dict[str, list[int]]) -> None:
        intent = ResetIntent(len(self.rows) + 1, {}, "a test", void=void)
        self.decide(RESET, **encoded(intent))

    def restore(self, saved: int, *, reread: bool = False) -> None:
        back = dict.fromkeys(self.sources, BatchIdentity(0, 1)) if reread else {}
        void = void_after_restore(self.now, saved, self.sources, back)
        self.reset({source: [*numbers] for source, numbers in void.items()})

    @property
    def now(self) -> Decisions:
        return Decisions(tuple(self.rows))

    @property
    def in_force(self) -> list[int]:
        (source,) = self.sources
        return [each.number for each in self.now.operations_of(source)]


def test_a_later_operation_stays_in_force_where_bronze_stays() -> None:
    history = History(*ONE)
    first = history.decide()
    saved = history.now.last
    second = history.decide("late_replay")
    history.restore(saved)
    assert history.in_force == [first, second]


def test_a_later_operation_has_no_place_after_bronze_has_gone_back() -> None:
    """The batches after the savepoint are read again, and may be others."""
    history = History(*ONE)
    first = history.decide()
    saved = history.now.last
    history.decide("late_replay")
    history.restore(saved, reread=True)
    assert history.in_force == [first]


def test_a_published_backfill_is_taken_back() -> None:
    history = History(*ONE)
    first = history.decide("backfill")
    saved = history.now.last
    history.decide("backfill")
    drain = history.decide()
    history.restore(saved)
    assert history.in_force == [first, drain]


def test_an_operation_is_in_force_again_if_it_was_at_the_savepoint() -> None:
    """Bronze goes back to where it had carried out the operation, though it was void since."""
    history = History(*ONE)
    early = history.now.last
    drain = history.decide()
    late = history.now.last
    history.restore(early, reread=True)
    assert history.in_force == []
    history.restore(late, reread=True)
    assert history.in_force == [drain]


def test_an_operation_is_void_again_if_it_was_at_the_savepoint() -> None:
    history = History(*ONE)
    early = history.now.last
    backfill = history.decide("backfill")
    kept = history.now.last
    history.restore(early)
    taken_back = history.now.last
    history.restore(kept)
    assert history.in_force == [backfill]
    history.restore(taken_back)
    assert history.in_force == []


def test_one_that_is_void_now_is_not_brought_back_by_an_earlier_savepoint() -> None:
    """The drain lies behind batches that bronze has lost since."""
    history = History(*ONE)
    early = history.now.last
    history.decide()
    history.restore(early, reread=True)
    history.restore(early)
    assert history.in_force == []


def test_operations_are_void_by_source() -> None:
    history = History(*TWO)
    first = history.decide()
    saved = history.now.last
    later = history.decide()
    void = void_after_restore(history.now, saved, TWO, {"orders": BatchIdentity(0, 1)})
    assert void == {"orders": [later], "clicks": []}
    history.reset({source: [*numbers] for source, numbers in void.items()})
    found = {s: [each.number for each in history.now.operations_of(s)] for s in TWO}
    assert found == {"orders": [first], "clicks": [first, later]}


def test_a_source_that_is_no_longer_declared_stays_as_it_was() -> None:
    history = History(*TWO)
    first = history.decide()
    history.reset({"orders": [first]})
    assert void_after_restore(history.now, 0, ["clicks"], {}) == {"orders": [first], "clicks": []}


def test_amendments_and_rebuilds_are_not_operations() -> None:
    history = History(*ONE)
    history.decide(AMENDMENT, documents={})
    history.decide("rebuild")
    assert void_after_restore(history.now, 0, ONE, {"events": None}) == {"events": []}


def test_a_replay_whose_batch_bronze_has_lost_is_void() -> None:
    """It was decided before the savepoint, but its batch came after it."""
    history = History(*ONE)
    drain = history.decide()
    replay = history.decide(REPLAY)
    saved = history.now.last
    assert void_after_restore(history.now, saved, ONE, {"events": BatchIdentity(0, 2)}) == {
        "events": []
    }
    history.restore(saved, reread=True)
    assert history.in_force == [drain]
    assert history.now.void == {"events": [replay]}


def test_operations_at_lost_batches_are_void() -> None:
    history = History(*ONE)
    numbers = [history.decide(n=n) for n in (1, 2, 3)]
    found = void_after_loss(history.now, {"events": BatchIdentity(0, 2)})
    assert found == {"events": [numbers[2]]}
    history.reset({"events": [1]})
    again = void_after_loss(history.now, {"events": BatchIdentity(0, 2)})
    assert again == {"events": [1, numbers[2]]}, "those that were void stay void"


def test_a_bronze_that_is_rebuilt_has_no_operations() -> None:
    history = History(*TWO)
    numbers = [history.decide(n=n) for n in (0, 3)]
    found = void_after_loss(history.now, {"orders": None})
    assert found == {"orders": numbers}
    assert void_after_loss(history.now, {}) == {}
