"""Drivers are killed at every named place; the next driver continues from what they have left."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from headgate.declaration.load import load
from headgate.lake.storage.layout import Layout
from tests.oracle import Closing, Tables, derive
from tests.property.protocol.histories import history_faults
from tests.support.damage import has_checkpoint, spoil_checkpoint
from tests.support.drivers import begin, run, start
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.rounds import ROUNDS, in_full
from tests.support.tables import differences

pytestmark = pytest.mark.recovery

GOLD = ("sliding", "bands")  # fewer tables, shorter runs

EVERYWHERE = (
    "fence:3",
    "files.listed",
    "files.committed:2",
    "bronze.staged",
    "bronze.committed:2",
    "quarantine.staged",
    "silver.staged:2",
    "silver.committed:3",
    "bronze.ingested",
    "quarantine.committed:2",
    "late.staged",
    "gold.staged",
    "gold.committed:3",
    "late.committed:3",
)
IN_OPERATIONS = ("operation.intended", "operation.staged", "operation.table_done")


@dataclass
class Shop:
    """A landing folder that fills, and the drivers that read it."""

    folder: Path
    files: list[bytes]

    def __post_init__(self) -> None:
        self.root = self.folder / "root"
        self.landing = Landing(self.folder / "landing")
        pipeline = declare(self.folder, self.landing.folder, gold=GOLD, max_files_per_batch=1)
        self.declaration = pipeline.file

    def deliver(self, count: int) -> None:
        done = len(self.landing.written)
        self.landing.write_all(self.files[done : done + count], first=done + 1)

    def finish(self, *options: str) -> None:
        ended = run(self.declaration, self.root, *options)
        assert ended.code == 0, ended.output

    def history_faults(self) -> list[str]:
        """The violations that the model of the protocol finds in all commits that were ever
        made."""
        return history_faults(Layout.of(str(self.root), "readings"), load(self.declaration))

    def expected(self, drains: Sequence[int] = ()) -> Tables:
        """``drains``: windows were closed when so many files were processed."""
        records = self.landing.records()
        last = [max(r.offset for r in records if r.offset >> 36 < files) for files in drains]
        return derive(records, rules(gold=GOLD), drains=[Closing({0: offset}) for offset in last])


@in_full
def test_killed_at_every_step_of_a_batch(tmp_path: Path) -> None:
    """Two new files a run, one a batch: the kill comes while something else is half done.

    In short runs, test_failures.py raises an error at all places, without a process to kill. A
    killed process leaves more: a lease, Spark's checkpoint, files that are not closed. These are
    the same at every place, and test_zombies.py kills one process."""
    shop = Shop(tmp_path, split(readings(600, seed=5), 2 * len(EVERYWHERE) + 1))
    spoiled = False
    for number, failpoint in enumerate(EVERYWHERE):
        shop.deliver(2)
        ended = run(shop.declaration, shop.root, failpoint=failpoint)
        assert ended.was_killed, f"{failpoint}: {ended.output}"
        spoiled |= has_checkpoint(shop.root)
        spoil_checkpoint(shop.root, number)
    shop.deliver(1)
    assert spoiled, "no kill has left a checkpoint"
    shop.finish()
    assert differences(shop.root, shop.expected()) == {}
    assert shop.history_faults() == []


@in_full
def test_a_driver_says_that_its_jvm_was_killed(tmp_path: Path) -> None:
    """As the kernel does if memory is short: the driver itself stays alive."""
    shop = Shop(tmp_path, split(readings(90, seed=8), 1))
    shop.deliver(1)
    about = (shop.declaration, "--root", shop.root, "--once")
    driver = begin("run", *about, failpoint="bronze.committed:1:stop")
    try:
        driver.wait_until_frozen()
        family = psutil.Process(driver.process.pid).children(recursive=True)
        (jvm,) = (each for each in family if each.name() == "java")
        jvm.kill()
        driver.resume()
    finally:
        ended = driver.end()
    assert ended.code == 7, ended.output
    assert "Spark's JVM has died" in ended.output
    assert "Py4J" not in ended.output.partition("Spark's JVM has died")[2]
    shop.finish()
    assert differences(shop.root, shop.expected()) == {}


@in_full
def test_killed_at_every_step_of_an_operation(tmp_path: Path) -> None:
    """The intent of the first driver is carried out before any later file is read."""
    shop = Shop(tmp_path, split(readings(120, seed=6), 2 + len(IN_OPERATIONS)))
    shop.deliver(1)
    options: tuple[str, ...] = ("--drain",)
    for failpoint in IN_OPERATIONS:
        ended = run(shop.declaration, shop.root, *options, failpoint=failpoint)
        assert ended.was_killed, f"{failpoint}: {ended.output}"
        shop.deliver(1)
        options = ()
    shop.finish()
    expected = shop.expected([1])
    assert {row["reason"] for rows in expected.late.values() for row in rows} == {"late", "closed"}
    assert differences(shop.root, expected) == {}
    assert shop.history_faults() == []


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shop = Shop(tmp_path, split(readings(200, seed=seed), 7))
    for number in range(3):
        shop.deliver(2)
        if chance.random() < 0.5:
            name = chance.choice(EVERYWHERE).partition(":")[0]
            run(shop.declaration, shop.root, failpoint=f"{name}:{chance.randrange(1, 5)}")
        else:
            driver = start(shop.declaration, shop.root)
            time.sleep(chance.uniform(1, 25))
            driver.kill()
        spoil_checkpoint(shop.root, number)
    shop.deliver(1)
    shop.finish()
    assert differences(shop.root, shop.expected()) == {}, f"seed {seed}"
    assert shop.history_faults() == [], f"seed {seed}"
