"""One step of one table: refresh, (bound,) stage, commit. Bronze and the stages use the same
steps."""

from __future__ import annotations

from collections.abc import Iterator

from tests.property.protocol.delta import Commit, Rows, World
from tests.property.protocol.past import batches, live_files, rows_of
from tests.property.protocol.routing import is_due, onward, reading_decisions
from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import TAKEN_BACK, Driver, Scenario, Successor
from tests.property.protocol.sourcing import sequenced
from tests.property.protocol.tables import SIDES, UPSTREAM, beside, kind_of, source_of

FAR = 1000
"""A batch that no scenario reaches."""


def refresh(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Step 1: the handle, and the table's state in that version."""
    table, log = driver.tables[0], world.log(driver.tables[0])
    head = log[-1]
    driver = driver._replace(handle=len(log) - 1, lower=head.n, closed=head.closed)
    if head.epoch > driver.epoch and scenario.keeps(Rule.EPOCH_CHECK):
        yield world, driver.end("fenced")
    elif kind_of(table) == "bronze":
        if head.end != driver.batch[0] and scenario.keeps(Rule.RANGE_CHECK):
            yield world, driver.end("bronze ended elsewhere")
        else:
            yield world, driver._replace(at="stage", target=head.n + 1)
    elif head.n >= driver.target:
        yield world, onward(scenario, world, driver, driver.tables[1:])
    else:
        yield world, driver._replace(at="bound" if kind_of(table) in SIDES else "stage")


def bound(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """A side table may have skipped batches, and only its dense table records closed windows."""
    dense = world.head(beside(driver.tables[0], SIDES[kind_of(driver.tables[0])]))
    lower = max(driver.lower, dense.n) if scenario.keeps(Rule.SIDE_LOWER_BOUND) else driver.lower
    if lower >= driver.target:
        yield world, onward(scenario, world, driver, driver.tables[1:])
    else:
        yield world, driver._replace(at="stage", lower=lower, closed=dense.closed)


def stage(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Step 2: write the files of this attempt. They stay orphans unless a commit names them."""
    table = driver.tables[0]
    state = world.log(table)[: driver.handle + 1]
    try:
        rows, others = process(scenario, world, driver)
        replaced = live_files(state) if kind_of(table) == "gold" else ()
        held = world.read(replaced)
    except (KeyError, LookupError) as gap:
        if is_due(scenario, world, driver):
            yield world, driver.end(TAKEN_BACK)
        else:
            yield world, driver.end(f"gap: {gap}")
        return
    if not rows and kind_of(table) in SIDES:
        yield world, onward(scenario, world, driver, driver.tables[1:])
        return
    attempt = driver.name if scenario.keeps(Rule.UNIQUE_ATTEMPT) else "again"
    path = f"{table}/{state[-1].generation}-{driver.target}-{attempt}"
    driver = driver._replace(at="commit", counts=(len(rows), len(others)), staged=(path,))
    yield world.write(path, held + rows), driver._replace(replaced=replaced)


def commit(scenario: Scenario, world: World, driver: Driver) -> Iterator[Successor]:
    """Step 3: commit on the handle of step 1."""
    table = driver.tables[0]
    if not scenario.keeps(Rule.OLD_HANDLE):
        driver = driver._replace(handle=len(world.log(table)) - 1)
    entry = entry_of(world.log(table)[driver.handle], table, driver)
    entry = entry._replace(app=scenario.keeps(Rule.APP_TRANSACTION))
    after = world.commit(table, driver.handle, entry)
    if after is not None:
        if kind_of(table) == "bronze":
            after = after._replace(checkpoint=driver.batch[0])  # Spark's own lags one behind
            yield after, reading_decisions(driver._replace(upto=entry.n))
            return
        yield after, onward(scenario, after, driver, driver.tables[1:])
    elif scenario.keeps(Rule.REFUSED_ENDS):
        yield world, driver.end("refused")
    else:
        yield world, driver._replace(handle=len(world.log(table)) - 1)


def entry_of(state: Commit, table: str, driver: Driver) -> Commit:
    """The commit: files, state, cumulative counts."""
    entry = state.without_data("data", driver.epoch)._replace(
        since=state.n,
        n=driver.target,
        added=driver.staged,
        removed=driver.replaced,
        counts=(state.counts[0] + driver.counts[0], state.counts[1] + driver.counts[1]),
    )
    if kind_of(table) == "bronze":
        entry = entry._replace(end=driver.batch[1], definition=driver.definition)
    return entry


def process(scenario: Scenario, world: World, driver: Driver) -> tuple[Rows, Rows]:
    """The rows that this step adds to its table, and the rows that belong to the other table."""
    table, is_side = driver.tables[0], kind_of(driver.tables[0]) in SIDES
    if kind_of(table) == "bronze":
        return sequenced(world, source_of(table))[slice(*driver.batch)], ()
    rows = upstream_rows(scenario, world, driver)
    events = scenario.events
    if kind_of(table) in ("silver", "quarantine"):
        rows = tuple(row for row in rows if events[row].outcome(driver.using) != "left out")
        aside = {row for row in rows if events[row].outcome(driver.using) == "bad"}
    else:
        late = {row for row in rows if events[row].outcome(driver.using) == "late"}
        aside = late | {row for row in rows if events[row].window <= driver.closed}
    mine = tuple(row for row in rows if (row in aside) == is_side)
    others = tuple(row for row in rows if (row in aside) != is_side)
    return mine, others


def upstream_rows(scenario: Scenario, world: World, driver: Driver) -> Rows:
    """The rows of batches (lower, target] by the upstream log. Raises LookupError for a gap."""
    log = world.log(beside(driver.tables[0], UPSTREAM[kind_of(driver.tables[0])]))
    upto = driver.target if scenario.keeps(Rule.NO_MORE_THAN_RANGE) else FAR
    found = list(batches(log, driver.lower, upto, jump=scenario.keeps(Rule.LINEAGE)))
    if not found or scenario.keeps(Rule.WHOLE_RANGE):
        return rows_of(world, found, driver.lower, driver.target)
    return rows_of(world, found[:1], found[0].since, driver.target)
