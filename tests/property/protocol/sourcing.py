"""The head of the pipeline: what to do next, list files, plan a range for bronze."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import World
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor, onward, stages


def plan(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """All that a driver may do once its tables are level. Its first choice makes progress."""
    driver = driver._replace(using=driver.definition)
    bronze, gold = world.head("bronze"), world.head("gold")
    is_open = bronze.operation > gold.operation and scenario.keeps(Rule.WAIT_FOR_OPERATION)
    if "bronze" in driver.layer and not is_open:
        yield from plan_source(scenario, world, driver)
        if bronze.operation < scenario.closings:
            yield world, driver._replace(at="intend")
    if "bronze" not in driver.layer:
        upstream = world.head("bronze" if driver.role == "silver" else "silver").n
        if upstream > driver.target:
            yield world, onward(driver._replace(target=upstream), stages(scenario, driver))
    if "gold" in driver.layer and bronze.operation > gold.operation and gold.n == bronze.n:
        yield world, driver._replace(at="operate")
    if sum(c.kind == "maintenance" for log in world.logs for c in log) < scenario.compactions:
        for table in ("bronze", "silver"):
            if table in driver.layer:
                yield world, driver._replace(at="compact", tables=(table,))


def plan_source(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A range of any length from where this driver stands; the files log if there is none."""
    position, recorded = driver.batch[1], world.head("files").end
    for end in range(recorded, position, -1):
        yield world, driver._replace(at="refresh", tables=("bronze",), batch=(position, end))
    if recorded < len(scenario.events):
        yield world, driver._replace(at="list")
    elif position >= recorded:
        yield world, driver.end("done")


def list_files(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Some or all files that the log of this version does not hold, and the handle to it."""
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
        yield after, driver._replace(at="plan", staged=())


def sequenced(world: World) -> tuple[int, ...]:
    """The events in the order that the files log recorded."""
    return tuple(int(name) for commit in world.log("files") for name in commit.added)
