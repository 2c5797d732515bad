"""The work between batches: an operation that closes windows, and compaction."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import World
from tests.property.protocol.past import live_files
from tests.property.protocol.routing import carried_out, onward, reading_decisions
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor
from tests.property.protocol.tables import table_of

DOWNSTREAM = {"bronze": "silver", "silver": "gold"}


def decide(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh control, to append a decision to it."""
    log = world.log("control")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    else:
        yield world, driver._replace(at="decide position", handle=len(log) - 1)


def decide_position(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """For the tables of each source, the operation takes place after the last batch of its bronze,
    to which only this driver commits."""
    of = "bronze" if scenario.keeps(Rule.POSITION_OF_BRONZE) else "gold"
    position = tuple((each, world.head(table_of(of, each)).n) for each in driver.touched)
    if not scenario.keeps(Rule.POSITION_BY_SOURCE):
        position = tuple((each, position[0][1]) for each in driver.touched)
    upto = world.head(table_of("bronze", driver.source)).n
    yield world, driver._replace(at="decide commit", position=position, upto=upto)


def decide_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """One more decision: an operation, with its place in the order of batches."""
    state = world.log("control")[driver.handle]
    entry = state.without_data("drain", driver.epoch)
    entry = entry._replace(n=state.n + 1, position=driver.position)
    entry = entry._replace(app=scenario.keeps(Rule.DECISION_FENCED))
    after = world.commit("control", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, reading_decisions(driver)


def operate(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh gold, which is at the place of the operation."""
    log = world.log(table_of("gold", driver.source))
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    else:
        yield world, driver._replace(at="operation commit", handle=len(log) - 1)


def operation_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Close every window that gold holds: one commit that records the operation."""
    table = table_of("gold", driver.source)
    log = world.log(table)[: driver.handle + 1]
    if driver.target <= carried_out(scenario, log[-1]):
        yield world, onward(scenario, world, driver)
        return
    held = (scenario.events[row].window for row in world.read(live_files(log)))
    entry = log[-1].without_data("operation", driver.epoch)
    entry = entry._replace(operation=driver.target, closed=max(held, default=log[-1].closed))
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, onward(scenario, after, driver)


def compact(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Merge the files of processed batches into one."""
    (table,) = driver.tables
    log = world.log(table)
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
        return
    keep = scenario.keeps(Rule.COMPACT_PROCESSED)
    processed = world.head(DOWNSTREAM[table]).n if keep else log[-1].n
    old = {path for commit in log if commit.n <= processed for path in commit.added}
    files = tuple(path for path in live_files(log) if path in old)
    if not files:
        yield world, driver.resting()
        return
    merged = f"{table}/merged-{driver.name}-{len(log)}"
    driver = driver._replace(at="compact commit", handle=len(log) - 1)
    driver = driver._replace(staged=(merged,), replaced=files)
    yield world.write(merged, world.read(files)), driver


def compact_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Replace the files, and vacuum at once: no reader may still need them."""
    (table,) = driver.tables
    entry = world.log(table)[driver.handle].without_data("maintenance", driver.epoch)
    entry = entry._replace(added=driver.staged, removed=driver.replaced)
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
        return
    yield after.delete(entry.removed), driver.resting()
