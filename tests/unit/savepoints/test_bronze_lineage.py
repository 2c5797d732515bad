"""Which savepoints lie in the past that bronze has."""

from __future__ import annotations

import random

import pytest

from headgate.savepoints.bronze_lineage import BronzeLineage
from headgate.savepoints.restore import restore
from headgate.savepoints.savepoint import Savepoint
from headgate.tables.history import lineage
from headgate.tables.table import Table
from tests.unit.ledger.conftest import Lake
from tests.unit.savepoints.conftest import NOW, add_batch, take


def bronze_of(lake: Lake) -> Table:
    return Table(lake.layout.storage, "bronze/events", pipeline="tiny")


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
            restore(lake.layout, lake.pipeline, into, 100 * step, NOW, reread=reread)
        bronze = bronze_of(lake)
        versions = {commit.version for commit in lineage(bronze)}
        for savepoint in taken:
            assert BronzeLineage(bronze).has(savepoint) == (savepoint.bronze.version in versions)
    assert len(taken) > 1
