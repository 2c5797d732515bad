"""A savepoint: the version of each table, read one after the other while drivers run; and a
copy."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import TABLES, Versions, World
from tests.property.protocol.past import awaits
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor


def cut(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Read the next table's version; after the last one, record all of them."""
    table, remaining = driver.tables[0], driver.tables[1:]
    seen = (*driver.versions, (table, len(world.log(table)) - 1))
    driver = driver._replace(versions=seen, tables=remaining)
    if remaining:
        yield world, driver
    elif is_torn(world, seen) and scenario.keeps(Rule.CUT_WHOLE):
        yield world, driver.end("done: no savepoint while tables go back")
    else:
        savepoint = tuple(sorted(seen, key=lambda one: TABLES.index(one[0])))
        saved = tuple(sorted({*world.savepoints, savepoint}))
        yield world._replace(savepoints=saved), driver.end("done")


def is_torn(world: World, seen: Versions) -> bool:
    """Whether a table still awaited a reset when it was read, according to bronze, which is read
    last."""
    bronze = world.log("bronze")[dict(seen)["bronze"]]
    return any(awaits(world, table, world.log(table)[at], bronze) for table, at in seen)


def copied(world: World, savepoint: Versions) -> World:
    """A copy of the pipeline at a savepoint, in another place."""
    logs = tuple(
        log[: dict(savepoint)[table] + 1] for table, log in zip(TABLES, world.logs, strict=True)
    )
    return World(logs, world.storage, world.epoch)
