"""Which savepoints lie in the past that bronze has."""

from __future__ import annotations

import random

import pytest

from headgate.declaration.graph import graph_of
from headgate.flow.operations.carrying_out import intend_operation
from headgate.history.savepoints.bronze_lineage import BronzeLineage
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import Commit
from headgate.lake.tables.table import Table
from tests.unit.history.savepoints.conftest import NOW, add_batch, take
from tests.unit.insight.ledger.conftest import Lake


def bronze_of(lake: Lake) -> Table:
    return Table(lake.layout.storage, "bronze/events", pipeline="tiny")


def batches_at(commit: Commit) -> tuple[int, int]:
    return commit.state.n, commit.state.data_commit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_every_commit_of_the_lineage_says(lake: Lake, seed: int) -> None:
    """Batches, savepoints and restores in any order."""
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
            reread = not BronzeLineage(bronze_of(lake)).has(into) or chance.random() < 0.6
            restore_savepoint(lake.layout, lake.pipeline, into, 100 * step, NOW, reread=reread)
        bronze = bronze_of(lake)
        had = {batches_at(commit) for commit in lineage(bronze)}
        for savepoint in taken:
            then = batches_at(next(lineage(bronze, savepoint.bronze.version)))
            assert BronzeLineage(bronze).has(savepoint) == (then in had)
    assert len(taken) > 1


def test_one_of_the_same_batches_lies_in_it_whatever_was_committed_between(lake: Lake) -> None:
    """For example, the start of a driver commits to every table."""
    first, bronze = take(lake), bronze_of(lake)
    bronze.fence(7)
    same = take(lake, 1)
    document = {"backfill": "b", "generation": 0, "tables": {"per_minute": {}}}
    intend_operation(bronze, graph_of(lake.pipeline), "backfill", document, NOW)
    corrected = take(lake, 2)
    add_batch(lake, 3)
    longer = take(lake, 3)
    restore_savepoint(lake.layout, lake.pipeline, first, 8, NOW, reread=True)
    found = BronzeLineage(bronze_of(lake))
    assert [found.has(each) for each in (first, same, corrected, longer)] == [
        True,
        True,
        False,
        False,
    ]
    restore_savepoint(lake.layout, lake.pipeline, same, 9, NOW)
