"""Resets: one decision asks for them, and one commit of each table carries one out."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import EMPTIED, Commit, Log, Versions, Void, World
from tests.property.protocol.past import (
    awaits,
    descends,
    is_begun,
    live_files,
    operations,
    rebuild_under_way,
    reset_of,
    resets,
    void_after,
)
from tests.property.protocol.routing import built, carrying_out
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor
from tests.property.protocol.tables import (
    BUILT,
    SIDES,
    kind_of,
    source_of,
    table_of,
    tables_of,
)


def ask(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh control, to append the decision to it."""
    log = world.log("control")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    elif scenario.keeps(Rule.SAME_PAST) and not has_past(scenario, world, driver):
        yield world, driver.end("done: bronze has another past")
    elif not scenario.keeps(Rule.ASKED_ANEW) and is_open(scenario, world, driver):
        yield world, carrying_out(scenario, driver, "prove")
    else:
        yield world, driver._replace(at="ask commit", handle=len(log) - 1)


def ask_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The decision: it raises the generation, and names all tables that have to go back and all
    operations that are not in force after it."""
    log = world.log("control")[: driver.handle + 1]
    wanted = (*wanted_by(scenario, driver), *younger(world, driver))
    remaining: Versions = ()
    if not scenario.keeps(Rule.ONE_DECISION):
        wanted, remaining = wanted[:1], wanted[1:]
    entry = (
        log[-1]
        .without_data("intent", driver.epoch)
        ._replace(
            n=log[-1].n + 1,
            generation=log[-1].generation + 1,
            wanted=wanted,
            void=void_of(scenario, log, driver),
            origin=dict(driver.versions).get("control", EMPTIED),
            app=scenario.keeps(Rule.DECISION_FENCED),
        )
    )
    after = world.commit("control", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    elif remaining:
        left = tuple(one for one in driver.versions if one not in wanted)
        yield after, carrying_out(scenario, driver._replace(versions=left), "ask")
    else:
        yield after, carrying_out(scenario, driver._replace(versions=wanted), "prove")


def rebuild(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh control, to append the begin of a rebuild to it."""
    log = world.log("control")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    else:
        yield world, driver._replace(at="rebuild commit", handle=len(log) - 1)


def rebuild_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The bronze of a source is read again beside the present one, which gets no batch until the
    publication. What is built from it is rebuilt as well."""
    state = world.log("control")[driver.handle]
    tables = tables_of((driver.source,), BUILT)
    entry = state.without_data("rebuild", driver.epoch)._replace(
        n=state.n + 1,
        wanted=tuple((table, EMPTIED) for table in tables),
        app=scenario.keeps(Rule.DECISION_FENCED),
    )
    after = world.commit("control", driver.handle, entry)
    yield (world, driver.end("refused")) if after is None else (after, driver.resting())


def publish(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh control, to append a publication to it."""
    log = world.log("control")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    else:
        yield world, driver._replace(at="publish commit", handle=len(log) - 1)


def publish_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The gold of a source gets its rebuild, which is at the beginning, so that it catches up as
    any other. If its bronze is rebuilt, all tables of the source do, and no operation of before is
    in force for them. Other jobs go on meanwhile."""
    log = world.log("control")[: driver.handle + 1]
    begun = rebuild_under_way(log)
    tables = tables_of((driver.source,), ("late", "gold") if begun is None else BUILT)
    void = {*void_after(log)}
    if begun is not None:
        own = (one.n for one in operations(log) if driver.source in dict(one.position))
        void |= {(number, driver.source) for number in own}
    state = log[-1].without_data("publication", driver.epoch)
    entry = state._replace(
        n=state.n + 1,
        generation=state.generation + 1,
        wanted=tuple((table, EMPTIED) for table in tables),
        void=tuple(sorted(void)),
        app=scenario.keeps(Rule.DECISION_FENCED),
    )
    after = world.commit("control", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        driver = driver._replace(generation=entry.generation)
        yield after, carrying_out(scenario, driver, "start")


def void_of(scenario: Scenario, control: Log, driver: Driver) -> Void:
    """The operations that are not in force after a reset, for each source: those that were not at
    the savepoint, and, of later ones, all if its bronze goes back, otherwise those that are not in
    force now."""
    now = {*void_after(control)}
    if driver.role == "rebuild":
        return tuple(sorted(now))
    versions = dict(driver.versions)
    then = control[: versions["control"] + 1]
    later = {(one.n, s) for one in operations(control) for s, _ in one.position}
    later = {each for each in later if each[0] > then[-1].n}
    back = {s for _, s in later if table_of("bronze", s) in versions}
    if driver.role == "restore" or not scenario.keeps(Rule.VOID_LATER):
        back = set()
    if not scenario.keeps(Rule.VOID_BY_SOURCE) and back:
        back = {s for _, s in later}
    later = {each for each in later if each[1] in back or each in now}
    before = {*void_after(then)} if scenario.keeps(Rule.VOID_AGAIN) else set()
    if not scenario.keeps(Rule.IN_FORCE_AGAIN):
        before |= now
    void = before | later
    if not scenario.keeps(Rule.VOID_OF_LEFT):
        void = {each for each in void if each[1] in driver.sources}
    return tuple(sorted(void))


def reset(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh the next table. Is a reset of it decided and not done?"""
    table = driver.tables[0]
    log = world.log(table)
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    elif awaits(world, table, by_table=scenario.keeps(Rule.NEWEST_BY_TABLE)):
        by_table = scenario.keeps(Rule.NEWEST_BY_TABLE)
        asked = reset_of(world.log("control"), table, by_table=by_table)
        yield world, driver._replace(at="reset commit", handle=len(log) - 1, asked=asked)
    else:
        yield world, past_reset(driver)


def reset_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    table, asked = driver.tables[0], driver.asked
    assert asked is not None
    log = world.log(table)[: driver.handle + 1]
    entry = back(scenario, log, dict(asked.wanted)[table], driver.epoch)
    if scenario.keeps(Rule.NEW_GENERATION):
        entry = entry._replace(generation=asked.generation)
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, past_reset(driver)


def past_reset(driver: Driver) -> Driver:
    """Continue with the next table, or after the last one with ``then``."""
    driver = driver._replace(handle=0, asked=None, tables=driver.tables[1:])
    if driver.tables:
        return driver._replace(at="reset")
    return driver._replace(at=driver.then, then="")


def prove(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A restore succeeds if every table has the files of its target version."""
    for table, version in wanted_by(scenario, driver):
        then = files_at(world.log(table), version)
        if sorted(live_files(world.log(table))) != sorted(then):
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
        )
    now, then = live_files(log), files_at(log, version)
    return state.without_data("reset", epoch)._replace(
        added=tuple(path for path in then if path not in now),
        removed=tuple(path for path in now if path not in then),
        generation=held.generation,
        origin=version,
    )


def files_at(log: Log, version: int) -> tuple[str, ...]:
    return live_files(log[: version + 1])


def wanted_by(scenario: Scenario, driver: Driver) -> Versions:
    """The resets that this process asks for."""
    sides = SIDES if not scenario.keeps(Rule.SIDES_TOO) else ()
    stay = {"bronze"} if driver.role == "restore" else set()
    kinds = {*BUILT} - {*stay, *sides}
    return tuple(one for one in driver.versions if kind_of(one[0]) in kinds)


def younger(world: World, driver: Driver) -> Versions:
    """The tables of sources that the savepoint does not know: their bronze stays, and all others
    catch up from the beginning."""
    if driver.role == "rebuild":
        return ()
    known = {source_of(table) for table, _ in driver.versions}
    new = tuple(s for s in world.sources if s not in known and is_begun(world, s))
    return tuple((table, EMPTIED) for table in tables_of(new, BUILT[1:]))


def has_past(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether no bronze changes for this process: it goes back as well, or the present batches of
    each source go on from those of the savepoint."""
    if driver.role != "restore":
        return True
    bronze = [table for table, _ in driver.versions if kind_of(table) == "bronze"]
    if not scenario.keeps(Rule.PAST_OF_EACH):
        bronze = bronze[:1]
    return all(has_past_of(scenario, world, driver, table) for table in bronze)


def has_past_of(scenario: Scenario, world: World, driver: Driver, bronze: str) -> bool:
    savepoint = dict(driver.versions)
    then = world.log(bronze)[savepoint[bronze]]
    if scenario.keeps(Rule.BATCH_IDENTITY):
        return descends(world, bronze, then)
    last = world.log("control")[savepoint["control"]].n
    later = (dict(one.wanted) for one in resets(world.log("control")) if one.n > last)
    back_to = (world.log(bronze)[one[bronze]].n for one in later if bronze in one)
    return all(n >= then.n for n in back_to)


def is_open(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether the same resets were asked for before and a table still awaits one."""
    last = next(resets(world.log("control")), None)
    if last is None or last.wanted != (*wanted_by(scenario, driver), *younger(world, driver)):
        return False
    return any(awaits(world, table) for table in built(scenario, driver))
