"""The beginning of the pipeline: decide what to do next, list files, plan a range for bronze."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import Drains, World
from tests.property.protocol.past import awaits, in_force, operations, rebuilt_source
from tests.property.protocol.routing import (
    carried_out,
    diverted,
    is_due,
    of_every_source,
    onward,
)
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor
from tests.property.protocol.tables import UPSTREAM, table_of


def plan(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """All that a driver may do after its tables have caught up. Its first choice makes progress."""
    driver = driver._replace(using=driver.definition)
    if is_due(scenario, world, driver):
        yield world, diverted(scenario, world, driver)
        return
    if driver.owns("bronze"):
        if (rebuilt := rebuilt_source(world.log("control"))) is not None:
            yield world, driver._replace(at="publish", source=rebuilt)
        yield from plan_sources(scenario, world, driver)
        yield from plan_decisions(scenario, world, driver)
    else:
        for source in driver.sources:
            if source not in scenario.damaged and has_work(scenario, world, driver, source):
                last = scenario.keeps(Rule.DECISIONS_READ_LAST)
                at = "survey" if last else "survey decisions"
                yield world, driver._replace(at=at, source=source)
    if sum(c.kind == "maintenance" for log in world.logs for c in log) < scenario.compactions:
        for table in ("bronze", "silver"):
            if table in driver.layer:
                yield world, driver._replace(at="compact", tables=(table,))


def plan_decisions(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """What bronze's job may decide: an operation, the begin of a rebuild, its publication."""
    control = world.log("control")
    if len(decided(world)) < scenario.drains:
        for touched in touchable(scenario, world, driver):
            yield world, of_every_source(driver)._replace(at="decide", touched=touched)
    if rebuilt_source(control) is None:
        for source in scenario.rebuilt:
            if not was_rebuilt(world, source):
                yield world, driver._replace(at="rebuild", source=source)
    if sum(commit.kind == "publication" for commit in control) < scenario.publications:
        for source in driver.sources:
            yield world, driver._replace(at="publish", source=source)


def touchable(scenario: Scenario, world: World, driver: Driver) -> tuple[tuple[str, ...], ...]:
    """The sources that an operation may touch: it closes the windows of all or, where a bronze may
    be rebuilt, of one."""
    if not scenario.rebuilt:
        return (driver.sources,)
    every = (driver.sources, *((source,) for source in driver.sources))
    if not scenario.keeps(Rule.REBUILT_WAITS):
        return every
    rebuilt = rebuilt_source(world.log("control"))
    return tuple(touched for touched in every if rebuilt not in touched)


def was_rebuilt(world: World, source: str) -> bool:
    bronze = table_of("bronze", source)
    begun = (one for one in world.log("control") if one.kind == "rebuild")
    return any(bronze in dict(one.wanted) for one in begun)


def decided(world: World) -> list[int]:
    """The numbers of all operations that were ever decided."""
    return [one.n for one in operations(world.log("control"))]


def has_work(scenario: Scenario, world: World, driver: Driver, source: str) -> bool:
    """Whether there are batches or an operation that the job of one layer has yet to do."""
    above = table_of(UPSTREAM[driver.role], source)
    waits = Rule.SILVER_WAITS if driver.role == "silver" else Rule.GOLD_WAITS
    by_table = scenario.keeps(Rule.NEWEST_BY_TABLE)
    if awaits(world, above, by_table=by_table) and scenario.keeps(waits):
        return False
    state = world.head(table_of(driver.role, source))
    return world.head(above).n > state.n or (
        driver.role == "gold"
        and any(
            n <= state.n and number > carried_out(scenario, state)
            for number, n in seen_in_force(scenario, world, source)
        )
    )


def seen_in_force(scenario: Scenario, world: World, source: str) -> Drains:
    """The operations of a source that a driver finds in control."""
    else_at = None if scenario.keeps(Rule.ADDED_UNTOUCHED) else 0
    return in_force(world.log("control"), source, else_at=else_at)


def survey(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The stages of a source read two tables that other jobs may write. First: the position of the
    table above."""
    above = UPSTREAM["silver" if driver.owns("silver") else "gold"]
    driver = driver._replace(upto=world.head(table_of(above, driver.source)).n)
    last = scenario.keeps(Rule.DECISIONS_READ_LAST) or driver.owns("bronze")
    then = driver._replace(at="survey decisions")
    yield world, then if last else onward(scenario, world, driver)


def survey_decisions(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Second: the operations up to this position."""
    driver = driver._replace(drains=seen_in_force(scenario, world, driver.source))
    last = scenario.keeps(Rule.DECISIONS_READ_LAST) or driver.owns("bronze")
    yield world, onward(scenario, world, driver) if last else driver._replace(at="survey")


def plan_sources(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A batch of one source, in any order of sources; the listing of files; the end if there is
    nothing left to do."""
    if scenario.failing and not scenario.keeps(Rule.FAILING_ALONE):
        yield world, driver.end("done")
        return
    rebuilt = rebuilt_source(world.log("control"))
    left_out = (*scenario.failing, rebuilt)
    healthy = [source for source in driver.sources if source not in left_out]
    for source in healthy:
        yield from plan_source(scenario, world, driver, source)
    if rebuilt is None and all(has_read_all(scenario, world, driver, source) for source in healthy):
        yield world, driver.end("done")


def has_read_all(scenario: Scenario, world: World, driver: Driver, source: str) -> bool:
    recorded = world.head(table_of("files", source)).end
    is_listed = recorded >= len(scenario.events_of(source))
    return is_listed and driver.ends[driver.sources.index(source)] >= recorded


def plan_source(
    scenario: Scenario, world: World, driver: Driver, source: str
) -> Iterator[Successor]:
    """A range of any length from the driver's position; the listing of files if there are more."""
    place = driver.sources.index(source)
    position, recorded = driver.ends[place], world.head(table_of("files", source)).end
    driver = driver._replace(source=source)
    for end in range(recorded, position, -1):
        ends = (*driver.ends[:place], end, *driver.ends[place + 1 :])
        chosen = driver._replace(batch=(position, end), ends=ends)
        yield world, chosen._replace(at="refresh", tables=(table_of("bronze", source),))
    if recorded < len(scenario.events_of(source)):
        yield world, driver._replace(at="list")


def list_files(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Some or all files that are not in the files log, and the handle to its present version."""
    log = world.log(table_of("files", driver.source))
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
        return
    known = {name for commit in log for name in commit.added}
    found = tuple(n for n in map(str, scenario.events_of(driver.source)) if n not in known)
    for some in dict.fromkeys((found, found[:1])):
        yield world, driver._replace(at="record", handle=len(log) - 1, staged=some)


def record(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    table = table_of("files", driver.source)
    state = world.log(table)[driver.handle]
    end = state.end + len(driver.staged)
    entry = state.without_data("data", driver.epoch)
    fenced = scenario.keeps(Rule.FILES_LOG_FENCED)
    entry = entry._replace(added=driver.staged, n=end, end=end, app=fenced)
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, driver.resting()


def sequenced(world: World, source: str) -> tuple[int, ...]:
    """The events of a source in the order that its files log recorded."""
    log = world.log(table_of("files", source))
    return tuple(int(name) for commit in log for name in commit.added)
