"""What must hold: in every state for the tables, at rest for the whole, and for each driver that
nobody disturbs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.property.protocol.delta import TABLES, Commit, World, live_files
from tests.property.protocol.scenario import SIDES, Driver, Scenario, State
from tests.property.protocol.sourcing import sequenced


class Violation(NamedTuple):
    """``damage``: a table is wrong. ``zombie``: it took a commit from a driver that had been
    replaced. ``stuck``: nothing is wrong yet, and what should happen does not."""

    kind: str
    text: str


def faults(scenario: Scenario, world: World) -> Iterator[Violation]:
    """Every table holds exactly what its position prescribes, once, and its counts say so."""
    for table in TABLES:
        yield from log_faults(table, world)
    yield from operation_faults(world)
    for table, rows in prescribed(scenario, world).items():
        try:
            held = world.read(live_files(world.log(table)))
        except KeyError as file:
            yield Violation("damage", f"{table} has lost the file {file}")
            continue
        if sorted(held) != sorted(rows):
            yield Violation("damage", f"{table} holds {sorted(held)}, prescribed is {sorted(rows)}")
    yield from count_faults(scenario, world)


def log_faults(table: str, world: World) -> Iterator[Violation]:
    log = world.log(table)
    for before, after in pairwise(log):
        if after.epoch < before.epoch:
            yield Violation(
                "zombie", f"{table} accepted a commit of epoch {after.epoch} after {before.epoch}"
            )
        if after.n < before.n or after.end < before.end:
            yield Violation("damage", f"the position of {table} fell from {before.n} to {after.n}")
    names = [name for commit in log for name in commit.added]
    if len(names) > len(set(names)):
        yield Violation("damage", f"{table} has a file twice")


def operation_faults(world: World) -> Iterator[Violation]:
    """Each operation is carried out once, in the place that its intent has in bronze's order."""
    intents = [(c.operation, c.n) for c in world.log("bronze") if c.kind == "intent"]
    done = [(c.operation, c.n) for c in world.log("gold") if c.kind == "operation"]
    if done != intents[: len(done)]:
        yield Violation("damage", f"operations (o, n) {done}, intents {intents}")


def prescribed(scenario: Scenario, world: World) -> dict[str, list[int]]:
    """The rows of each table up to its position: a function of bronze's log and the closings."""
    tables: dict[str, list[int]] = {"bronze": []}
    tables |= {name: [] for side, dense in SIDES.items() for name in (side, dense)}
    reach = {dense: world.head(dense).n for dense in SIDES.values()}
    # A side table may be ahead of its dense table, or have had no rows to commit.
    reach |= {side: max(world.head(side).n, world.head(dense).n) for side, dense in SIDES.items()}
    for row, batch in batches(world):
        tables["bronze"].append(row)
        outcome = scenario.events[row].outcome(batch.definition)
        home = ["quarantine"] if outcome == "bad" else ["silver"]
        if outcome != "bad":
            aside = outcome == "late" or is_closed(scenario, world, row, batch.n)
            home.append("late" if aside else "gold")
        for table in home:
            if batch.n <= reach[table]:
                tables[table].append(row)
    return tables


def batches(world: World) -> Iterator[tuple[int, Commit]]:
    """Each event up to bronze's end, with the commit that brought it in."""
    commits = [commit for commit in world.log("bronze") if commit.kind == "data"]
    files = sequenced(world)
    for before, commit in zip([Commit(), *commits], commits, strict=False):
        for row in files[before.end : commit.end]:
            yield row, commit


def is_closed(scenario: Scenario, world: World, row: int, n: int) -> bool:
    """Its window was closed by an operation before its batch reached gold."""
    operations = [commit for commit in world.log("gold") if commit.kind == "operation"]
    return any(o.n < n and scenario.events[row].window <= o.closed for o in operations)


def count_faults(scenario: Scenario, world: World) -> Iterator[Violation]:
    """A dense table counts its own rows and those it left to its side table, to the same n."""
    if world.head("bronze").counts[0] != world.head("bronze").end:
        yield Violation("damage", "bronze miscounts")
    position = {row: commit.n for row, commit in batches(world)}
    tables = prescribed(scenario, world)
    for side, dense in SIDES.items():
        head = world.head(dense)
        beside = sum(position[row] <= head.n for row in tables[side])
        if head.counts != (len(tables[dense]), beside):
            yield Violation(
                "damage", f"{dense} counts {head.counts}, not {(len(tables[dense]), beside)}"
            )


def completion_faults(scenario: Scenario, state: State) -> Iterator[Violation]:
    """With every driver at rest: all files absorbed by the tables that drivers were there for,
    and every intent carried out."""
    tables = {table for driver in state.drivers for table in driver.layer}
    bronze, gold = state.world.head("bronze"), state.world.head("gold")
    if "bronze" in tables and bronze.end != len(scenario.events):
        yield Violation("stuck", "files are left unread")
    if any(state.world.head(dense).n != bronze.n for dense in tables & set(SIDES.values())):
        yield Violation("stuck", "stages are left behind")
    if "gold" in tables and gold.operation != bronze.operation:
        yield Violation("stuck", "an intent is left open")


def driver_faults(state: State) -> Iterator[Violation]:
    for driver in state.drivers:
        if driver.ended and driver.at != "ended: done" and undisturbed(state, driver):
            yield Violation(
                "stuck", f"the {driver.role} driver {driver.at}, though nobody took over"
            )


def undisturbed(state: State, driver: Driver) -> bool:
    """Nobody newer works on its tables."""
    newer = [other for other in state.drivers if other.epoch > driver.epoch]
    return not any(set(other.layer) & set(driver.layer) for other in newer)
