"""How a process starts or takes over: lease, fences, then the position to continue from."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import EMPTIED, Versions, World
from tests.property.protocol.routing import carrying_out, reading_decisions
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import (
    LAYERS,
    RESETTING,
    SIDES,
    Driver,
    Scenario,
    Successor,
)


def lease(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Take a new epoch from the lease, which may be taken from a driver that still runs."""
    epoch = world.epoch + 1 if scenario.keeps(Rule.RISING_EPOCH) else 1
    world = world._replace(epoch=epoch)
    fences = (t for t in driver.layer if t != "control" or scenario.keeps(Rule.CONTROL_FENCED))
    driver = driver._replace(epoch=epoch, at="fence", tables=tuple(fences))
    if driver.role in RESETTING:
        for wanted in choices(world, driver):
            chosen = driver._replace(versions=wanted)
            yield world, chosen if scenario.keeps(Rule.RESTORE_FENCES) else fenced(scenario, chosen)
        return
    if not scenario.keeps(Rule.FENCE_OWN_LAYER):
        driver = driver._replace(tables=LAYERS["fused"])
    if not scenario.keeps(Rule.FENCE_EVERY_TABLE):
        driver = driver._replace(tables=tuple(t for t in driver.tables if t not in SIDES))
    if not scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    if not scenario.keeps(Rule.FENCE):
        driver = driver._replace(at="start", generation=world.head("control").generation)
    yield world, driver


def choices(world: World, driver: Driver) -> tuple[Versions, ...]:
    """The possible targets of a reset: gold to empty, or all tables to a savepoint, the latest
    first."""
    if driver.role == "rebuild":
        return ((("late", EMPTIED), ("gold", EMPTIED)),)
    return world.savepoints[::-1]


def fence(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh the handle of the next table to fence."""
    log = world.log(driver.tables[0])
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.FENCE_CHECK):
        yield world, driver.end("fenced")
        return
    yield world, driver._replace(at="fence commit", handle=len(log) - 1)


def fence_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The only commit that is retried after a refusal: it changes nothing but the epoch."""
    table, copy = driver.tables[0], scenario.keeps(Rule.COPY_FORWARD)
    state = world.log(table)[driver.handle]
    commit = state.without_data("fence", driver.epoch, copy_forward=copy)
    after = world.commit(table, driver.handle, commit)
    if after is None:
        yield world, driver._replace(at="fence")
        return
    remaining = driver.tables[1:]
    driver = driver._replace(at="fence", tables=remaining, handle=0)
    if not remaining:
        generation = after.head("control").generation
        driver = fenced(scenario, driver._replace(generation=generation))
    yield after, driver


def fenced(scenario: Scenario, driver: Driver) -> Driver:
    """No older process can write this process's tables any more: finish their resets and
    continue. A process that asks for resets need not: each table does the last one that names
    it."""
    if driver.role in RESETTING:
        return driver._replace(at="ask")
    may_be_open = any(role in RESETTING for role in scenario.roles)
    if may_be_open and scenario.keeps(Rule.RESET_AT_START):
        return carrying_out(driver, "start")
    return driver._replace(at="start")


def start(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Continue from bronze: its end for the next range, its n for the stages."""
    if scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    catches_up = scenario.keeps(Rule.CATCH_UP_AT_START)
    yield world, reading_decisions(driver) if catches_up else driver.resting()


def resume(scenario: Scenario, world: World, driver: Driver) -> Driver:
    bronze = world.head("bronze")
    end = bronze.end if scenario.keeps(Rule.CHECKPOINT_IN_BRONZE) else world.checkpoint
    pinned = scenario.keeps(Rule.PINNED_DEFINITION) and bronze.n > 0
    return driver._replace(
        batch=(end, end),
        upto=bronze.n,
        using=bronze.definition if pinned else driver.definition,
    )
