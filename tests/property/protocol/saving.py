"""A savepoint: the version of each table, read one after the other while drivers run; and a
copy."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import Versions, World
from tests.property.protocol.past import awaits, is_begun
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import UPWARDS, Driver, Scenario, Successor
from tests.property.protocol.tables import tables_of


def cut(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Read the next table's version."""
    tables = driver.tables or order(scenario, world, driver)
    seen = (*driver.versions, (tables[0], len(world.log(tables[0])) - 1))
    at = "cut" if tables[1:] else "confirm"
    yield world, driver._replace(at=at, versions=seen, tables=tables[1:])


def order(scenario: Scenario, world: World, driver: Driver) -> tuple[str, ...]:
    """The tables of a savepoint, in the order in which it reads them."""
    sources = tuple(s for s in world.sources if s in driver.sources or is_begun(world, s))
    kinds = UPWARDS if scenario.keeps(Rule.CUT_UPWARDS) else UPWARDS[::-1]
    if not scenario.keeps(Rule.CUT_DECISIONS):
        kinds = (*(kind for kind in kinds if kind != "control"), "control")
    if scenario.keeps(Rule.CUT_BY_KIND):
        return tables_of(sources, kinds)
    return tuple(dict.fromkeys(t for s in sources for t in tables_of((s,), kinds)))


def confirm(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Read control once more: was a reset decided of a table that had not done it when it was
    read?"""
    seen = driver.versions
    if is_torn(scenario, world, seen) and scenario.keeps(Rule.CUT_WHOLE):
        yield world, driver.end("done: no savepoint while tables go back")
    else:
        savepoint = tuple(sorted(seen, key=lambda one: world.tables.index(one[0])))
        saved = tuple(sorted({*world.savepoints, savepoint}))
        yield world._replace(savepoints=saved), driver.end("done")


def is_torn(scenario: Scenario, world: World, seen: Versions) -> bool:
    """Whether a table still awaited a reset when it was read."""
    by_table = scenario.keeps(Rule.NEWEST_BY_TABLE)
    return any(awaits(world, t, world.log(t)[at], by_table=by_table) for t, at in seen)


def copied(world: World, savepoint: Versions) -> World:
    """A copy of the pipeline at a savepoint, in another place."""
    versions = dict(savepoint)
    logs = tuple(
        log[: versions.get(t, 0) + 1] for t, log in zip(world.tables, world.logs, strict=True)
    )
    return World(world.tables, logs, world.storage, world.epoch)
