"""How a process starts or takes over: lease, fences, then the position to continue from."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import EMPTIED, Versions, World
from tests.property.protocol.routing import (
    carrying_out,
    fenced_by,
    of_every_source,
    reading_decisions,
)
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import (
    DRIVERS,
    LAYERS,
    RESETTING,
    Driver,
    Scenario,
    Successor,
)
from tests.property.protocol.tables import SIDES, kind_of, table_of, tables_of


def lease(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Take a new epoch from the lease, which may be taken from a driver that still runs."""
    epoch = world.epoch + 1 if scenario.keeps(Rule.RISING_EPOCH) else 1
    world = world._replace(epoch=epoch)
    driver = driver._replace(epoch=epoch, at="fence", tables=fences(scenario, driver))
    if driver.role in RESETTING:
        for wanted in choices(scenario, world, driver):
            chosen = driver._replace(versions=wanted)
            yield world, chosen if scenario.keeps(Rule.RESTORE_FENCES) else fenced(scenario, chosen)
        return
    if not scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    if not scenario.keeps(Rule.FENCE):
        driver = driver._replace(at="start", generation=world.head("control").generation)
    yield world, driver


def fences(scenario: Scenario, driver: Driver) -> tuple[str, ...]:
    """The tables that a process fences, in this order."""
    tables = fenced_by(scenario, driver)
    if driver.role in DRIVERS and not scenario.keeps(Rule.FENCE_OWN_LAYER):
        tables = tables_of(scenario.sources, LAYERS["fused"])
    left_out = {*()} if scenario.keeps(Rule.CONTROL_FENCED) else {"control"}
    if driver.role in DRIVERS and not scenario.keeps(Rule.FENCE_EVERY_TABLE):
        left_out |= {*SIDES}
    return tuple(table for table in tables if kind_of(table) not in left_out)


def choices(scenario: Scenario, world: World, driver: Driver) -> tuple[Versions, ...]:
    """The possible targets of a reset: the gold of a source to empty, or all tables to a savepoint,
    the latest first."""
    if driver.role != "rebuild":
        return world.savepoints[::-1]
    each = (tables_of((source,), ("late", "gold")) for source in scenario.sources)
    return tuple(tuple((table, EMPTIED) for table in tables) for tables in each)


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
    publishes = scenario.publications or scenario.rebuilt
    may_be_open = publishes or any(role in RESETTING for role in scenario.roles)
    if may_be_open and scenario.keeps(Rule.RESET_AT_START):
        return carrying_out(scenario, driver, "start")
    return driver._replace(at="start")


def start(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Continue from bronze: its end for the next range, its n for the stages."""
    if scenario.keeps(Rule.START_AFTER_FENCE):
        driver = resume(scenario, world, driver)
    catches_up = scenario.keeps(Rule.CATCH_UP_AT_START)
    yield world, reading_decisions(driver) if catches_up else driver.resting()


def resume(scenario: Scenario, world: World, driver: Driver) -> Driver:
    heads = [world.head(table_of("bronze", source)) for source in driver.sources]
    first = heads[0]
    ends = [each.end for each in heads]
    if not scenario.keeps(Rule.CHECKPOINT_IN_BRONZE):
        ends = [world.checkpoint for _ in heads]
    pinned = scenario.keeps(Rule.PINNED_DEFINITION) and first.n > 0
    return of_every_source(driver)._replace(
        ends=tuple(ends),
        upto=first.n,
        using=first.definition if pinned else driver.definition,
    )
