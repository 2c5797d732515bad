"""Resets: one commit of bronze requests them, and one commit of each table carries one out."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import EMPTIED, Commit, Log, Versions, World
from tests.property.protocol.past import asked_for, awaits, lineage, live_files
from tests.property.protocol.routing import built, carrying_out
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import SIDES, Driver, Scenario, Successor


def ask(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh bronze, to write the intent into its log."""
    log, savepoint = world.log("bronze"), dict(driver.versions)
    leaves_bronze = driver.role == "restore" and scenario.keeps(Rule.SAME_PAST)
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    elif leaves_bronze and not is_past(world, savepoint.get("bronze", driver.handle)):
        yield world, driver.end("done: bronze has another past")
    elif not scenario.keeps(Rule.ASKED_ANEW) and is_open(scenario, world, driver):
        yield world, carrying_out(driver, "prove")
    else:
        yield world, driver._replace(at="ask commit", handle=len(log) - 1)


def ask_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The intent: it raises the generation and names all tables that have to go back."""
    log = world.log("bronze")[: driver.handle + 1]
    wanted = wanted_by(scenario, driver)
    remaining: Versions = ()
    if not scenario.keeps(Rule.ONE_INTENT):
        wanted, remaining = wanted[:1], wanted[1:]
    entry = log[-1].without_data("reset", driver.epoch)._replace(origin=driver.handle)
    if "bronze" in dict(wanted):
        entry = back(scenario, log, dict(wanted)["bronze"], driver.epoch)
    if "bronze" in dict(wanted) and not scenario.keeps(Rule.REREAD_ATOMIC):
        remaining, entry = wanted[1:], entry._replace(asked=log[-1].asked)
    else:
        version = len(world.log("bronze"))
        generation = log[-1].generation + 1
        entry = entry._replace(asked=version, wanted=wanted, generation=generation)
    entry = entry._replace(app=scenario.keeps(Rule.INTENT_FENCED))
    after = world.commit("bronze", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    elif remaining:
        yield after, carrying_out(driver._replace(versions=remaining), "ask")
    else:
        yield after, carrying_out(driver._replace(versions=wanted), "prove")


def reset(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh the next table. Is a reset of it requested and not done?"""
    table = driver.tables[0]
    log = world.log(table)
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    elif awaits(world, table):
        asked = world.head("bronze").asked
        yield world, driver._replace(at="reset commit", handle=len(log) - 1, asked=asked)
    else:
        yield world, past_reset(driver)


def reset_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    table = driver.tables[0]
    intent = world.log("bronze")[driver.asked]
    log = world.log(table)[: driver.handle + 1]
    entry = back(scenario, log, dict(intent.wanted)[table], driver.epoch)
    if scenario.keeps(Rule.NEW_GENERATION):
        entry = entry._replace(generation=intent.generation)
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, past_reset(driver)


def past_reset(driver: Driver) -> Driver:
    """Continue with the next table, or after the last one with ``then``."""
    driver = driver._replace(handle=0, asked=-1, tables=driver.tables[1:])
    if driver.tables:
        return driver._replace(at="reset")
    return driver._replace(at=driver.then, then="")


def prove(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A restore succeeds if every table has the files of its target version."""
    for table, version in driver.versions:
        then = files_at(world.log(table), version)
        if table != "bronze" and sorted(live_files(world.log(table))) != sorted(then):
            yield world, driver.end(f"{table} is not what was wanted")
            return
    yield world, driver.end("done")


def back(scenario: Scenario, log: Log, version: int, epoch: int) -> Commit:
    """A commit that takes a table back to the files and the state of a version."""
    held, state = log[-1], log[version] if version != EMPTIED else Commit()
    if version == EMPTIED and not scenario.keeps(Rule.CLOSED_AGAIN):
        state = state._replace(operation=held.operation)
    if not scenario.keeps(Rule.TARGET_POSITION):
        state = state._replace(n=held.n)
    if not scenario.keeps(Rule.TARGET_STATE):
        state = state._replace(
            counts=held.counts,
            operation=held.operation,
            closed=held.closed,
            drains=held.drains,
        )
    now, then = live_files(log), files_at(log, version)
    return state.without_data("reset", epoch)._replace(
        added=tuple(path for path in then if path not in now),
        removed=tuple(path for path in now if path not in then),
        generation=held.generation,
        origin=version,
        asked=held.asked,
    )


def files_at(log: Log, version: int) -> tuple[str, ...]:
    return live_files(log[: version + 1])


def wanted_by(scenario: Scenario, driver: Driver) -> Versions:
    """The resets that this process requests; bronze is the first, if it is among them."""
    sides = SIDES if not scenario.keeps(Rule.SIDES_TOO) else ()
    stay = {"files", "bronze"} if driver.role == "restore" else {"files"}
    return tuple(one for one in driver.versions if one[0] not in {*stay, *sides})


def is_past(world: World, version: int) -> bool:
    """Whether bronze's present batches are those that it had at ``version``."""
    return version in (at for at, _ in lineage(world.log("bronze")))


def is_open(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether the same resets were requested before and a table still awaits one."""
    intent = asked_for(world)
    if intent is None or intent.wanted != wanted_by(scenario, driver):
        return False
    return any(awaits(world, table) for table in built(driver))
