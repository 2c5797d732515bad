"""Which savepoints lie in the past that bronze has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest

from headgate.history.savepoints.resets import BatchIdentity, ResetIntent, is_of_lineage
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.storage.documents import encoded
from headgate.lake.tables.decisions import RESET, Decision, Decisions
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import Commit
from headgate.lake.tables.table import Table
from tests.support.decisions import control_of
from tests.unit.history.savepoints.conftest import NOW, add_batch, take
from tests.unit.insight.ledger.conftest import Lake

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Taken:
    """A savepoint: the last batch of bronze by its identity, and all its batches."""

    batch: BatchIdentity
    batches: Sequence[int]


@dataclass
class History:
    """Bronze of one source as a list of batches, each of which is unique, and the resets."""

    batches: list[int] = field(default_factory=list)
    generation: int = 0
    resets: list[ResetIntent] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def add(self, batches: int = 1) -> None:
        self.batches += [next(self.numbers) for _ in range(batches)]

    def take(self) -> Taken:
        return Taken(BatchIdentity(self.generation, len(self.batches)), tuple(self.batches))

    def reread(self, savepoint: Taken) -> None:
        self._reset({"events": savepoint.batch})
        self.generation, self.batches = len(self.resets), [*savepoint.batches]

    def restore(self) -> None:
        """Leaves bronze as it is."""
        self._reset({})

    def rebuild(self) -> None:
        self._reset({"events": None})
        self.generation, self.batches = len(self.resets), []

    def _reset(self, back_to: dict[str, BatchIdentity | None]) -> None:
        generation = len(self.resets) + 1
        self.resets.append(ResetIntent(generation, {}, "a test", back_to=back_to))

    def has(self, savepoint: Taken) -> bool:
        rows = (
            Decision(number, RESET, {}, encoded(intent), NOON)
            for number, intent in enumerate(self.resets, 1)
        )
        return is_of_lineage(Decisions(tuple(rows)), "events", savepoint.batch)

    def really_has(self, savepoint: Taken) -> bool:
        held = len(savepoint.batches)
        return [*savepoint.batches] == self.batches[:held]


def test_what_comes_after_the_batch_that_bronze_went_back_to_is_gone() -> None:
    history = History()
    history.add(2)
    early = history.take()
    history.add(2)
    late = history.take()
    assert history.has(early)
    assert history.has(late)
    history.reread(early)
    history.add(2)
    assert history.has(early)
    assert not history.has(late), "its batches 3 and 4 are others"
    assert history.has(history.take())


def test_bronze_that_went_sideways_has_lost_where_it_was() -> None:
    """The last reset went to a batch id that is as high as that of the savepoint."""
    history = History()
    begin = history.take()
    history.add(2)
    first = history.take()
    history.reread(begin)
    history.add(2)
    second = history.take()
    history.reread(first)
    assert history.has(first), "bronze is there"
    assert not history.has(second)
    history.reread(second)
    assert not history.has(first)
    assert history.has(second)


def test_a_restore_that_leaves_bronze_changes_nothing() -> None:
    history = History()
    history.add()
    early = history.take()
    history.add()
    late = history.take()
    for _ in range(2):
        history.restore()
        assert history.has(late)
    history.reread(early)
    history.restore()
    assert not history.has(late)


def test_one_of_the_same_batches_lies_in_it_whichever_reset_came_before_it() -> None:
    history = History()
    history.add(2)
    first = history.take()
    history.reread(first)
    same = history.take()
    assert first.batch != same.batch
    history.reread(first)
    assert history.has(same)


def test_bronze_that_is_rebuilt_has_none_of_before() -> None:
    history = History()
    history.add()
    before = history.take()
    history.rebuild()
    assert not history.has(before)
    history.add()
    assert not history.has(before)
    assert history.has(history.take())


def test_each_source_has_its_own() -> None:
    intents = [
        ResetIntent(1, {}, "a test", back_to={"orders": BatchIdentity(0, 2)}),
        ResetIntent(2, {}, "a test", back_to={"clicks": BatchIdentity(0, 5)}),
    ]
    rows = tuple(Decision(n, RESET, {}, encoded(each), NOON) for n, each in enumerate(intents, 1))
    for source, n, expected in (
        ("orders", 2, True),
        ("orders", 3, False),
        ("clicks", 5, True),
        ("clicks", 6, False),
        ("views", 9, True),
    ):
        assert is_of_lineage(Decisions(rows), source, BatchIdentity(0, n)) == expected


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_the_batches_say(seed: int) -> None:
    """Batches, savepoints, restores and rebuilds in any order."""
    chance, history = random.Random(seed), History()
    history.add()
    taken = [history.take()]
    for _ in range(60):
        match chance.choice(("add", "add", "take", "take", "reread", "reread", "restore", "build")):
            case "add":
                history.add()
            case "take" if history.batches:
                taken.append(history.take())
            case "reread":
                history.reread(chance.choice(taken))
            case "restore":
                history.restore()
            case "build" if chance.random() < 0.3:
                history.rebuild()
        for savepoint in taken:
            assert history.has(savepoint) == history.really_has(savepoint)


def bronze_of(lake: Lake) -> Table:
    return Table(lake.layout.storage, "bronze/events", pipeline="tiny")


def decisions_of(lake: Lake) -> Decisions:
    """As another process reads them."""
    return control_of(lake.layout.storage, "tiny").refresh()


def batches_at(commit: Commit) -> tuple[int, int]:
    return commit.state.n, commit.state.data_commit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_every_commit_of_the_lineage_says(lake: Lake, seed: int) -> None:
    """As above, with real tables."""
    chance = random.Random(seed)
    taken: list[Savepoint] = [take(lake)]
    for step in range(1, 12):
        pick = chance.random()
        if pick < 0.4:
            add_batch(lake, bronze_of(lake).refresh().n + 1)
        elif pick < 0.6:
            taken.append(take(lake, step))
        else:
            into = chance.choice(taken)
            is_left = into.is_of_lineage(decisions_of(lake))
            reread = not is_left or chance.random() < 0.6
            restore_savepoint(lake.layout, lake.pipeline, into, 100 * step, NOW, reread=reread)
        bronze, decisions = bronze_of(lake), decisions_of(lake)
        had = {batches_at(commit) for commit in lineage(bronze)}
        for savepoint in taken:
            version = savepoint.bronze["events"].version
            then = batches_at(next(lineage(bronze, version)))
            assert savepoint.is_of_lineage(decisions) == (then in had)
    assert len(taken) > 1


def test_the_start_of_a_driver_changes_no_lineage(lake: Lake) -> None:
    """It commits to every table."""
    first, bronze = take(lake), bronze_of(lake)
    bronze.fence(7)
    same = take(lake, 1)
    add_batch(lake, 3)
    longer = take(lake, 2)
    restore_savepoint(lake.layout, lake.pipeline, first, 8, NOW, reread=True)
    decisions = decisions_of(lake)
    assert [each.is_of_lineage(decisions) for each in (first, same, longer)] == [True, True, False]
    restore_savepoint(lake.layout, lake.pipeline, same, 9, NOW)
