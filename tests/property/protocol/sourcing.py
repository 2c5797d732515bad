"""The beginning of the pipeline: decide what to do next, list files, plan a range for bronze."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import World
from tests.property.protocol.past import awaits
from tests.property.protocol.routing import carried_out, is_due, onward
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import TAKEN_BACK, Driver, Scenario, Successor


def plan(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """All that a driver may do after its tables have caught up. Its first choice makes progress."""
    driver = driver._replace(using=driver.definition)
    if is_due(scenario, world, driver):
        yield world, driver.end(TAKEN_BACK)
        return
    bronze = world.head("bronze")
    if "bronze" in driver.layer:
        yield from plan_source(scenario, world, driver)
        if sum(c.kind == "intent" for c in world.log("bronze")) < scenario.drains:
            yield world, driver._replace(at="intend")
    elif driver.role == "silver" and bronze.n > world.head("silver").n:
        driver = driver._replace(upto=bronze.n, drains=bronze.drains)
        yield world, onward(scenario, world, driver)
    elif driver.role == "gold" and has_work(scenario, world):
        first = "survey" if scenario.keeps(Rule.CLOSINGS_READ_LAST) else "survey operations"
        yield world, driver._replace(at=first)
    if sum(c.kind == "maintenance" for log in world.logs for c in log) < scenario.compactions:
        for table in ("bronze", "silver"):
            if table in driver.layer:
                yield world, driver._replace(at="compact", tables=(table,))


def has_work(scenario: Scenario, world: World) -> bool:
    """Whether there are batches or an operation that gold has yet to do."""
    gold, drains = world.head("gold"), world.head("bronze").drains
    if awaits(world, "silver") and scenario.keeps(Rule.GOLD_WAITS):
        return False
    due = any(n <= gold.n for number, n in drains if number > carried_out(scenario, gold))
    return due or world.head("silver").n > gold.n


def survey(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Gold's job reads two tables that other jobs write. First: the position of silver."""
    driver = driver._replace(upto=world.head("silver").n)
    last = not scenario.keeps(Rule.CLOSINGS_READ_LAST)
    yield (
        world,
        onward(scenario, world, driver) if last else driver._replace(at="survey operations"),
    )


def survey_operations(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Second: the operations up to this position."""
    driver = driver._replace(drains=world.head("bronze").drains)
    last = scenario.keeps(Rule.CLOSINGS_READ_LAST)
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
