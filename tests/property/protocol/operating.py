"""What runs between batches: closing windows as an operation, and compaction."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import Commit, World, live_files
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import Driver, Scenario, Successor, stages

DOWNSTREAM = {"bronze": "silver", "silver": "gold"}


def intend(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Refresh bronze, to write the next intent into its log."""
    log = world.log("bronze")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    else:
        yield world, driver._replace(at="intend commit", handle=len(log) - 1)


def intend_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Intent o takes a place in bronze's order: behind batch n, before batch n + 1."""
    state = world.log("bronze")[driver.handle]
    entry = state.without_data("intent", driver.epoch)._replace(operation=state.operation + 1)
    entry = entry._replace(app=scenario.keeps(Rule.INTENT_FENCED))
    after = world.commit("bronze", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, driver._replace(at="operate" if "gold" in driver.layer else "plan")


def operate(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Is there an intent that gold has not carried out? Nothing else marks one as done."""
    log = world.log("gold")
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
        return
    bronze = world.head("bronze")
    level = log[-1].n == bronze.n or not scenario.keeps(Rule.LEVEL_BEFORE_OPERATION)
    if bronze.operation > carried_out(scenario, log[-1]) and level:
        yield world, driver._replace(at="operation commit", handle=len(log) - 1)
    else:
        yield world, go_on(scenario, world, driver)


def operation_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Close every window that gold holds: one commit with the second app transaction o."""
    log = world.log("gold")[: driver.handle + 1]
    held = (scenario.events[row].window for row in world.read(live_files(log)))
    entry = log[-1].without_data("operation", driver.epoch)
    operation = carried_out(scenario, log[-1]) + 1
    entry = entry._replace(operation=operation, closed=max(held, default=-1))
    after = world.commit("gold", driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
    else:
        yield after, go_on(scenario, after, driver)


def carried_out(scenario: Scenario, gold: Commit) -> int:
    return gold.operation if scenario.keeps(Rule.OPERATION_TRANSACTION) else 0


def go_on(scenario: Scenario, world: World, driver: Driver) -> Driver:
    """To the next batch. Only the mutant that operates first has its stages ahead of it."""
    behind = driver.target > world.head("gold").n
    tables = stages(scenario, driver) if behind else ()
    return driver._replace(at="refresh" if behind else "plan", tables=tables)


def compact(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Merge the files of absorbed batches into one."""
    (table,) = driver.tables
    log = world.log(table)
    if log[-1].epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
        return
    keep = scenario.keeps(Rule.COMPACT_ABSORBED)
    absorbed = world.head(DOWNSTREAM[table]).n if keep else log[-1].n
    old = {path for commit in log if commit.n <= absorbed for path in commit.added}
    files = tuple(path for path in live_files(log) if path in old)
    if not files:
        yield world, driver._replace(at="plan", tables=())
        return
    merged = f"{table}/merged-{driver.name}-{len(log)}"
    driver = driver._replace(at="compact commit", handle=len(log) - 1)
    driver = driver._replace(staged=(merged,), replaced=files)
    yield world.write(merged, world.read(files)), driver


def compact_commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Replace them, and vacuum at once: no reader may still need them."""
    (table,) = driver.tables
    entry = world.log(table)[driver.handle].without_data("maintenance", driver.epoch)
    entry = entry._replace(added=driver.staged, removed=driver.replaced)
    after = world.commit(table, driver.handle, entry)
    if after is None:
        yield world, driver.end("refused")
        return
    driver = driver._replace(at="plan", staged=(), replaced=(), tables=())
    yield after.delete(entry.removed), driver
