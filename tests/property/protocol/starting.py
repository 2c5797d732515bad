"""How a driver starts or takes over: lease, fences, then the point to go on from."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import World
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import (
    LAYERS,
    SIDES,
    Driver,
    Scenario,
    Successor,
    onward,
    stages,
)


def lease(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A new epoch from the lease, which may be taken from a driver that still lives."""
    epoch = world.epoch + 1 if scenario.keeps(Rule.RISING_EPOCH) else 1
    driver = driver._replace(epoch=epoch, at="fence", tables=driver.layer)
    if not scenario.keeps(Rule.FENCE_OWN_LAYER):
        driver = driver._replace(tables=LAYERS["fused"])
    if not scenario.keeps(Rule.FENCE_EVERY_TABLE):
        driver = driver._replace(tables=tuple(t for t in driver.tables if t not in SIDES))
    if not scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    if not scenario.keeps(Rule.FENCE):
        driver = driver._replace(at="start")
    yield world._replace(epoch=epoch), driver


def fence(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh the handle of the next table to fence."""
    log = world.log(driver.tables[0])
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.FENCE_CHECK):
        yield world, driver.end("fenced")
        return
    yield world, driver._replace(at="fence commit", handle=len(log) - 1)


def fence_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The one commit that is tried again when refused: it says nothing but the epoch."""
    table, copy = driver.tables[0], scenario.keeps(Rule.COPY_FORWARD)
    state = world.log(table)[driver.handle]
    commit = state.without_data("fence", driver.epoch, copy_forward=copy)
    after = world.commit(table, driver.handle, commit)
    if after is None:
        yield world, driver._replace(at="fence")
    else:
        remaining = driver.tables[1:]
        yield after, driver._replace(at="fence" if remaining else "start", tables=remaining)


def start(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Go on from bronze: its end for the next range, its n for the stages."""
    if scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    if not scenario.keeps(Rule.CATCH_UP_AT_START):
        yield world, driver._replace(at="plan")
    elif not scenario.keeps(Rule.LEVEL_BEFORE_OPERATION) and "gold" in driver.layer:
        yield world, driver._replace(at="operate", tables=stages(scenario, driver))
    else:
        yield world, onward(driver, stages(scenario, driver))


def resume(scenario: Scenario, world: World, driver: Driver) -> Driver:
    bronze = world.head("bronze")
    end = bronze.end if scenario.keeps(Rule.CHECKPOINT_IN_BRONZE) else world.checkpoint
    pinned = scenario.keeps(Rule.PINNED_DEFINITION) and bronze.n > 0
    upstream = world.head("silver") if driver.role == "gold" else bronze
    return driver._replace(
        batch=(end, end),
        target=upstream.n,
        using=bronze.definition if pinned else driver.definition,
    )
