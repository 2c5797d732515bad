"""A driver is frozen, another takes over and is killed, and the first one wakes up: its commits are
no longer accepted. A third driver finishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.lease import LeaseHeldError
from headgate.driver.task import Task
from tests.recovery.test_kills import Shop
from tests.support.damage import has_checkpoint, spoil_checkpoint
from tests.support.driver_here import run_here
from tests.support.drivers import run, start
from tests.support.events import readings
from tests.support.frozen import require_rising_epochs, require_shut_out
from tests.support.landing import split
from tests.support.rounds import IN_FULL
from tests.support.tables import differences

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

# Between the commits of two tables of one stage (a fence is a commit too).
FROZEN = ("silver.committed:3",)
MORE = (
    "gold.staged",
    "bronze.staged",
    "bronze.committed:2",
    "late.committed:3",
    "files.listed",
    "silver.staged:2",
)


@pytest.mark.parametrize("failpoint", FROZEN + (MORE if IN_FULL else ()))
def test_a_frozen_driver_is_shut_out(spark: SparkSession, tmp_path: Path, failpoint: str) -> None:
    shop = Shop(tmp_path, split(readings(90, seed=7), 3))
    task = Task(load(shop.declaration), str(shop.root), once=True)
    shop.deliver(2)
    name, _, nth = failpoint.partition(":")
    frozen = start(shop.declaration, shop.root, failpoint=f"{name}:{nth or 1}:stop")
    try:
        frozen.wait_until_frozen()
        shop.deliver(1)
        with pytest.raises(LeaseHeldError):
            run_here(spark, task)
        # Killed after the frozen driver's batch, within a batch that this driver read itself.
        killed = run(shop.declaration, shop.root, "--take-over", failpoint="late.committed:5")
        assert killed.was_killed, killed.output
        require_shut_out(frozen, shop.root)
    finally:
        frozen.kill()
    assert has_checkpoint(shop.root)
    spoil_checkpoint(shop.root, 0)
    run_here(spark, task)
    require_rising_epochs(shop.root)
    assert differences(shop.root, shop.expected()) == {}
    assert shop.history_faults() == []
