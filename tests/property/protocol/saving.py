"""A savepoint: the version of each table, read one after the other while drivers run; and a
copy."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import TABLES, Versions, World
from tests.property.protocol.past import awaits
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor


def cut(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Read the next table's version."""
    table, remaining = driver.tables[0], driver.tables[1:]
    seen = (*driver.versions, (table, len(world.log(table)) - 1))
    driver = driver._replace(versions=seen, tables=remaining)
    if remaining:
        yield world, driver
    else:
        yield world, driver._replace(at="confirm")


def confirm(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Read control once more: was a reset decided of a table that had not done it when it was
    read?"""
    seen = driver.versions
    if is_torn(scenario, world, seen) and scenario.keeps(Rule.CUT_WHOLE):
        yield world, driver.end("done: no savepoint while tables go back")
    else:
        savepoint = tuple(sorted(seen, key=lambda one: TABLES.index(one[0])))
        saved = tuple(sorted({*world.savepoints, savepoint}))
        yield world._replace(savepoints=saved), driver.end("done")


def is_torn(scenario: Scenario, world: World, seen: Versions) -> bool:
    """Whether a table still awaited a reset when it was read."""
    by_table = scenario.keeps(Rule.NEWEST_BY_TABLE)
    return any(awaits(world, t, world.log(t)[at], by_table=by_table) for t, at in seen)


def copied(world: World, savepoint: Versions) -> World:
    """A copy of the pipeline at a savepoint, in another place."""
    logs = tuple(
        log[: dict(savepoint)[table] + 1] for table, log in zip(TABLES, world.logs, strict=True)
    )
    return World(logs, world.storage, world.epoch)
