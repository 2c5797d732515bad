"""The beginning of the pipeline: decide what to do next, list files, plan a range for bronze."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import World
from tests.property.protocol.past import awaits, in_force, operations
from tests.property.protocol.routing import carried_out, is_due, onward
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import TAKEN_BACK, UPSTREAM, Driver, Scenario, Successor


def plan(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """All that a driver may do after its tables have caught up. Its first choice makes progress."""
    driver = driver._replace(using=driver.definition)
    if is_due(scenario, world, driver):
        yield world, driver.end(TAKEN_BACK)
        return
    if "bronze" in driver.layer:
        yield from plan_source(scenario, world, driver)
        if len(decided(world)) < scenario.drains:
            yield world, driver._replace(at="decide")
    elif has_work(scenario, world, driver):
        last = scenario.keeps(Rule.DECISIONS_READ_LAST)
        yield world, driver._replace(at="survey" if last else "survey decisions")
    if sum(c.kind == "maintenance" for log in world.logs for c in log) < scenario.compactions:
        for table in ("bronze", "silver"):
            if table in driver.layer:
                yield world, driver._replace(at="compact", tables=(table,))


def decided(world: World) -> list[int]:
    """The numbers of all operations that were ever decided."""
    return [one.n for one in operations(world.log("control"))]


def has_work(scenario: Scenario, world: World, driver: Driver) -> bool:
    """Whether there are batches or an operation that the job of one layer has yet to do."""
    above = UPSTREAM[driver.role]
    waits = Rule.SILVER_WAITS if driver.role == "silver" else Rule.GOLD_WAITS
    by_table = scenario.keeps(Rule.NEWEST_BY_TABLE)
    if awaits(world, above, by_table=by_table) and scenario.keeps(waits):
        return False
    state = world.head(driver.role)
    return world.head(above).n > state.n or (
        driver.role == "gold"
        and any(
            n <= state.n and number > carried_out(scenario, state)
            for number, n in in_force(world.log("control"))
        )
    )


def survey(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """The job of one layer reads two tables that other jobs write. First: the position of the table
    above."""
    driver = driver._replace(upto=world.head(UPSTREAM[driver.role]).n)
    last = scenario.keeps(Rule.DECISIONS_READ_LAST)
    then = driver._replace(at="survey decisions")
    yield world, then if last else onward(scenario, world, driver)


def survey_decisions(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Second: the operations up to this position."""
    driver = driver._replace(drains=in_force(world.log("control")))
    last = scenario.keeps(Rule.DECISIONS_READ_LAST) or "bronze" in driver.layer
    yield world, onward(scenario, world, driver) if last else driver._replace(at="survey")


def plan_source(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A range of any length from the driver's position; the listing of files if there is none."""
    position, recorded = driver.batch[1], world.head("files").end
    for end in range(recorded, position, -1):
        yield world, driver._replace(at="refresh", tables=("bronze",), batch=(position, end))
    if recorded < len(scenario.events):
        yield world, driver._replace(at="list")
    elif position >= recorded:
        yield world, driver.end("done")


def list_files(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Some or all files that are not in the files log, and the handle to its present version."""
    log = world.log("files")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
        return
    known = {name for commit in log for name in commit.added}
    found = tuple(str(n) for n in range(len(scenario.events)) if str(n) not in known)
    for some in dict.fromkeys((found, found[:1])):
        yield world, driver._replace(at="record", handle=len(log) - 1, staged=some)


def record(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    state = world.log("files")[driver.handle]
    end = state.end + len(driver.staged)
    entry = state.without_data("data", driver.epoch)
    fenced = scenario.keeps(Rule.FILES_LOG_FENCED)
    entry = entry._replace(added=driver.staged, n=end, end=end, app=fenced)
    after = world.commit("files", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, driver.resting()


def sequenced(world: World) -> tuple[int, ...]:
    """The events in the order that the files log recorded."""
    return tuple(int(name) for commit in world.log("files") for name in commit.added)
