"""What a driver does next: how far each of its tables goes, and what is due in between."""

from __future__ import annotations

from tests.property.protocol.delta import Commit, World
from tests.property.protocol.past import resets
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import LAYERS, TAKEN_BACK, Driver, Scenario
from tests.property.protocol.tables import (
    BUILT,
    SIDES,
    WITHOUT_SIDES,
    table_of,
    tables_of,
)


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
        return diverted(scenario, world, driver)
    if driver.source in scenario.damaged:
        alone = scenario.keeps(Rule.DAMAGED_ALONE)
        return next_source(driver) if alone else driver.end(f"source {driver.source} is damaged")
    silver = table_of("silver", driver.source)
    if driver.owns("silver") and world.head(silver).n < driver.upto:
        return silver_next(scenario, world, driver)
    return gold_next(scenario, world, driver) if driver.owns("gold") else next_source(driver)


def next_source(driver: Driver) -> Driver:
    """The tables of one source are level: continue with those of the next one."""
    if not driver.others:
        return driver.resting()
    return driver._replace(at="survey", source=driver.others[0], others=driver.others[1:])


def silver_next(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """Bring silver to bronze's n, but in one step no further than to the n of an operation."""
    n = world.head(table_of("silver", driver.source)).n
    stops = [stop for _, stop in driver.drains if n < stop < driver.upto]
    if not scenario.keeps(Rule.SILVER_STOPS):
        stops = []
    return stage_of(scenario, driver, "silver", min([*stops, driver.upto]))


def gold_next(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """Bring gold to silver's n, with every operation at its place."""
    gold = world.head(table_of("gold", driver.source))
    for number, n in driver.drains:
        if number <= carried_out(scenario, gold):
            continue
        stop = min(n, driver.upto) if scenario.keeps(Rule.GOLD_STOPS) else driver.upto
        if gold.n < stop:
            return stage_of(scenario, driver, "gold", stop)
        return driver._replace(at="operate", target=number) if gold.n >= n else next_source(driver)
    if gold.n < driver.upto:
        return stage_of(scenario, driver, "gold", driver.upto)
    return next_source(driver)


def stage_of(scenario: Scenario, driver: Driver, dense: str, target: int) -> Driver:
    """Bring one stage to ``target``, its tables in the order of commits."""
    sides = () if driver.source in WITHOUT_SIDES else (k for k, of in SIDES.items() if of == dense)
    kinds = (*sides, dense)
    if not scenario.keeps(Rule.SIDE_FIRST):
        kinds = kinds[::-1]
    tables = tuple(table_of(kind, driver.source) for kind in kinds)
    return driver._replace(at="refresh", target=target, tables=tables)


def carried_out(scenario: Scenario, gold: Commit) -> int:
    return gold.operation if scenario.keeps(Rule.OPERATION_ONCE) else 0


def is_due(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether a reset was decided after this driver fenced its tables."""
    moved = world.head("control").generation != driver.generation
    return scenario.keeps(Rule.RESET_ENDS) and moved


def diverted(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """What a driver does if a reset was decided since: it ends. If rebuilds were published, and
    nothing else, it carries that out and goes on."""
    since = (one for one in resets(world.log("control")) if one.generation > driver.generation)
    if any(one.kind == "intent" for one in since):
        return driver.end(TAKEN_BACK)
    driver = driver._replace(generation=world.head("control").generation)
    if not scenario.keeps(Rule.PUBLICATION_TAKEN):
        return driver.resting()
    return carrying_out(scenario, driver, "start")


def carrying_out(scenario: Scenario, driver: Driver, then: str) -> Driver:
    """Carry out the resets of a process's tables, and then continue at ``then``."""
    return driver._replace(at="reset", tables=built(scenario, driver), then=then)


def built(scenario: Scenario, driver: Driver) -> tuple[str, ...]:
    """The tables that a process may reset, bronze first, side tables before dense ones."""
    found = {*fenced_by(scenario, driver)}
    every = tables_of(scenario.sources, BUILT)
    return tuple(table for table in every if table in found)


def fenced_by(scenario: Scenario, driver: Driver) -> tuple[str, ...]:
    """The tables that a process fences: its own, and those of the same kinds that are not declared
    any more."""
    if not scenario.keeps(Rule.LEFT_FENCED):
        return driver.layer
    return tables_of(scenario.sources, LAYERS[driver.role])


def reading_decisions(driver: Driver) -> Driver:
    """The driver knows the position of its bronze: read control second, then bring the stages
    there. The job of one layer reads both when it is at rest."""
    is_fused = driver.owns("bronze") and driver.owns("silver")
    return driver._replace(at="survey decisions") if is_fused else driver.resting()


def of_every_source(driver: Driver) -> Driver:
    """Bring the stages of all sources up, one after the other."""
    return driver._replace(source=driver.sources[0], others=driver.sources[1:])
