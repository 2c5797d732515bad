"""What a driver does next: how far each of its tables goes, and what is due in between."""

from __future__ import annotations

from tests.property.protocol.delta import Commit, World
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import BUILT, SIDES, TAKEN_BACK, Driver, Scenario


def onward(
    scenario: Scenario, world: World, driver: Driver, tables: tuple[str, ...] = ()
) -> Driver:
    """Continue with the next of these tables; after the last one, with the work that is due
    then."""
    driver = driver._replace(
        staged=(), replaced=(), counts=(0, 0), handle=0, lower=0, closed=-1, tables=tables
    )
    if tables:
        return driver._replace(at="refresh")
    if is_due(scenario, world, driver):
        return driver.end(TAKEN_BACK)
    if "silver" in driver.layer and world.head("silver").n < driver.upto:
        return silver_next(scenario, world, driver)
    return gold_next(scenario, world, driver) if "gold" in driver.layer else driver.resting()


def silver_next(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """Bring silver to bronze's n, but in one step no further than to the n of an operation."""
    n = world.head("silver").n
    stops = [stop for _, stop in driver.drains if n < stop < driver.upto]
    if not scenario.keeps(Rule.SILVER_STOPS):
        stops = []
    return stage_of(scenario, driver, "silver", min([*stops, driver.upto]))


def gold_next(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """Bring gold to silver's n, with every operation at its place."""
    gold = world.head("gold")
    for number, n in driver.drains:
        if number <= carried_out(scenario, gold):
            continue
        stop = min(n, driver.upto) if scenario.keeps(Rule.GOLD_STOPS) else driver.upto
        if gold.n < stop:
            return stage_of(scenario, driver, "gold", stop)
        return driver._replace(at="operate", target=number) if gold.n >= n else driver.resting()
    if gold.n < driver.upto:
        return stage_of(scenario, driver, "gold", driver.upto)
    return driver.resting()


def stage_of(scenario: Scenario, driver: Driver, dense: str, target: int) -> Driver:
    """Bring one stage to ``target``, its tables in the order of commits."""
    side = next(side for side, of in SIDES.items() if of == dense)
    tables = (side, dense) if scenario.keeps(Rule.SIDE_FIRST) else (dense, side)
    return driver._replace(at="refresh", target=target, tables=tables)


def carried_out(scenario: Scenario, gold: Commit) -> int:
    return gold.operation if scenario.keeps(Rule.OPERATION_ONCE) else 0


def is_due(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether a reset was decided after this driver fenced its tables."""
    moved = world.head("control").generation != driver.generation
    return scenario.keeps(Rule.RESET_ENDS) and moved


def carrying_out(driver: Driver, then: str) -> Driver:
    """Carry out the resets of a process's tables, and then continue at ``then``."""
    return driver._replace(at="reset", tables=built(driver), then=then)


def built(driver: Driver) -> tuple[str, ...]:
    """The tables of a process that may be reset, bronze first, side tables before dense ones."""
    return tuple(table for table in BUILT if table in driver.layer)


def reading_decisions(driver: Driver) -> Driver:
    """The driver knows the position of its bronze: read control second, then bring the stages
    there. The job of one layer reads both when it is at rest."""
    is_fused = {"bronze", "silver"} <= {*driver.layer}
    return driver._replace(at="survey decisions") if is_fused else driver.resting()
