"""The invariants: for the tables in every state, for the whole pipeline when all drivers are at
rest, and for each driver that no other driver disturbs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.property.protocol.delta import EMPTIED, TABLES, Commit, Log, World
from tests.property.protocol.past import (
    DECISIONS,
    awaits,
    decisions,
    in_force,
    lineage,
    live_files,
    reset_of,
)
from tests.property.protocol.scenario import (
    DRIVERS,
    SIDES,
    TAKEN_BACK,
    Driver,
    Scenario,
    State,
)
from tests.property.protocol.sourcing import sequenced


class Violation(NamedTuple):
    """``damage``: a table is wrong. ``zombie``: a table accepted a commit from a driver that had
    been replaced. ``stuck``: nothing is wrong, but something that should happen does not."""

    kind: str
    text: str


def faults(scenario: Scenario, world: World) -> Iterator[Violation]:
    """All that is wrong with the tables of a world."""
    yield from log_faults(world)
    yield from force_faults(world)
    yield from content_faults(scenario, world)


def content_faults(scenario: Scenario, world: World) -> Iterator[Violation]:
    """Every table holds exactly the rows for its position, each once, and its counts are right. The
    contents of a table that awaits a reset do not matter, because the reset replaces them."""
    yield from decision_faults(world)
    if not awaits(world, "gold"):
        yield from operation_faults(world)
    for below, above in (("silver", "bronze"), ("gold", "silver")):
        settled = not awaits(world, below) and not awaits(world, above)
        if settled and world.head(below).n > world.head(above).n:
            yield Violation("damage", f"{below} is ahead of {above}")
    due = tables_due(scenario, world)
    for table, rows in due.items():
        try:
            held = world.read(live_files(world.log(table)))
        except KeyError as file:
            yield Violation("damage", f"{table} has lost the file {file}")
            continue
        if sorted(held) != sorted(rows):
            yield Violation("damage", f"{table} holds {sorted(held)}, prescribed is {sorted(rows)}")
    yield from count_faults(world, due)


def log_faults(world: World) -> Iterator[Violation]:
    """Epochs and generations never fall, positions only with a reset."""
    for table in TABLES:
        for before, after in pairwise(world.log(table)):
            if after.epoch < before.epoch:
                text = f"{table} accepted a commit of epoch {after.epoch} after {before.epoch}"
                yield Violation("zombie", text)
            if after.generation < before.generation:
                yield Violation("damage", f"the generation of {table} fell")
            if after.kind != "reset" and (after.n < before.n or after.end < before.end):
                text = f"the position of {table} fell from {before.n} to {after.n}"
                yield Violation("damage", text)
        past = [commit for _, commit in lineage(world.log(table)) if commit.kind != "reset"]
        names = [name for commit in past for name in commit.added]
        if len(names) > len(set(names)):
            yield Violation("damage", f"{table} has a file twice")


def decision_faults(world: World) -> Iterator[Violation]:
    """Decisions are numbered in their order. Operations in force have places in the same order,
    and none of them lies beyond bronze."""
    numbers = [one.n for one in decisions(world.log("control"))]
    if numbers != sorted({*numbers}, reverse=True):
        yield Violation("damage", f"decisions are numbered {numbers[::-1]}")
    positions = [n for _, n in in_force(world.log("control"))]
    reach = bronze_to_be(world)[-1].n
    if positions != sorted(positions) or any(n > reach for n in positions):
        yield Violation("damage", f"operations in force at {positions}, and bronze at {reach}")


def force_faults(world: World) -> Iterator[Violation]:
    """The operations in force are those that a walk through all decisions leaves in force."""
    held, due = {o for o, _ in in_force(world.log("control"))}, due_in_force(world.log("control"))
    if held != due:
        yield Violation("damage", f"operations {sorted(held)} are in force, not {sorted(due)}")


def due_in_force(control: Log) -> set[int]:
    """The numbers of the operations that should be in force, from one decision to the next."""
    version = next((v for v in range(len(control))[::-1] if control[v].kind in DECISIONS), None)
    if version is None:
        return set()
    last, before = control[version], due_in_force(control[:version])
    if last.kind == "drain":
        return before | {last.n}
    if last.origin == EMPTIED:
        return before
    savepoint = control[: last.origin + 1]
    later = {number for number in before if number > savepoint[-1].n}
    return due_in_force(savepoint) | (set() if "bronze" in dict(last.wanted) else later)


def operation_faults(world: World) -> Iterator[Violation]:
    """Each operation that is in force is carried out once, at its place among the batches."""
    past = [commit for _, commit in lineage(world.log("gold"))][::-1]
    done = tuple((c.operation, c.n) for c in past if c.kind == "operation")
    # If a rebuild was published, the earlier operations are in the rebuild's log.
    decided = tuple(o for o in in_force(world.log("control")) if o[0] > past[0].operation)
    if done != decided[: len(done)]:
        yield Violation("damage", f"operations (o, n) {[*done]}, decided {[*decided]}")


def tables_due(scenario: Scenario, world: World) -> dict[str, list[int]]:
    """The rows of each table up to its position, except for tables that await a reset."""
    tables: dict[str, list[int]] = {} if awaits(world, "bronze") else {"bronze": []}
    tables |= {name: [] for pair in SIDES.items() for name in pair if not awaits(world, name)}
    reach = {dense: world.head(dense).n for dense in SIDES.values() if not awaits(world, dense)}
    # A side table may be ahead of its dense table, or have had no rows to commit.
    reach |= {side: max(world.head(side).n, reach.get(of, 0)) for side, of in SIDES.items()}
    for row, batch, homes in prescribed(scenario, world):
        for table in ("bronze", *homes):
            if table in tables and batch.n <= reach.get(table, batch.n):
                tables[table].append(row)
    return tables


def prescribed(scenario: Scenario, world: World) -> Iterator[tuple[int, Commit, tuple[str, ...]]]:
    """Each event, its batch, and the tables that it belongs to. They depend only on bronze and on
    the operations in force."""
    closed, folded = -1, -1
    drains = list(in_force(world.log("control")))
    for row, batch in batches(world):
        while drains and drains[0][1] < batch.n:
            closed = folded
            drains.pop(0)
        event = scenario.events[row]
        outcome = event.outcome(batch.definition)
        if outcome == "left out":
            yield row, batch, ()
        elif outcome == "bad":
            yield row, batch, ("quarantine",)
        elif outcome == "late" or event.window <= closed:
            yield row, batch, ("silver", "late")
        else:
            folded = max(folded, event.window)
            yield row, batch, ("silver", "gold")


def bronze_to_be(world: World) -> Log:
    """Bronze's log. If it awaits a reset: up to the version that it goes back to."""
    log, reset = world.log("bronze"), reset_of(world.log("control"), "bronze")
    if reset is None or not awaits(world, "bronze"):
        return log
    return log[: dict(reset.wanted)["bronze"] + 1] or (Commit(),)


def batches(world: World) -> Iterator[tuple[int, Commit]]:
    """Each event up to bronze's end, with the commit that brought it in."""
    past = reversed([commit for _, commit in lineage(bronze_to_be(world))])
    # If a rebuild of bronze was published, one commit stands for its first batches.
    commits = [c for c in past if c.kind == "data" or (c.kind == "reset" and c.origin == EMPTIED)]
    files = sequenced(world)
    for before, commit in zip([Commit(), *commits], commits, strict=False):
        for row in files[before.end : commit.end]:
            yield row, commit


def count_faults(world: World, due: dict[str, list[int]]) -> Iterator[Violation]:
    """A dense table counts its own rows and the rows of its side table, up to the same n."""
    if "bronze" in due and world.head("bronze").counts[0] != world.head("bronze").end:
        yield Violation("damage", "bronze miscounts")
    position = {row: commit.n for row, commit in batches(world)}
    for side, dense in SIDES.items():
        if awaits(world, dense) or awaits(world, side):
            continue
        head = world.head(dense)
        beside = sum(position[row] <= head.n for row in due[side])
        if head.counts != (len(due[dense]), beside):
            yield Violation(
                "damage", f"{dense} counts {head.counts}, not {(len(due[dense]), beside)}"
            )


def completion_faults(scenario: Scenario, state: State) -> Iterator[Violation]:
    """Once no driver has work, the running drivers of each table have processed all files, carried
    out every operation and done every reset."""
    world = state.world
    tables = {table for driver in running(state.drivers) for table in driver.layer}
    bronze, silver, gold = (world.head(table) for table in ("bronze", "silver", "gold"))
    if "bronze" in tables and bronze.end != len(scenario.events):
        yield Violation("stuck", "files are left unread")
    if any(awaits(world, table) for table in tables):
        yield Violation("stuck", "a reset is left open")
    if "silver" in tables and silver.n != bronze.n and not awaits(world, "bronze"):
        yield Violation("stuck", "stages are left behind")
    if "gold" not in tables or awaits(world, "silver"):
        return
    if gold.n != silver.n:
        yield Violation("stuck", "stages are left behind")
    if any(o > gold.operation for o, n in in_force(world.log("control")) if n <= gold.n):
        yield Violation("stuck", "an operation is left open")


def running(drivers: tuple[Driver, ...]) -> Iterator[Driver]:
    """The drivers that serve their tables: at rest or done, and not replaced."""
    for driver in drivers:
        is_well = driver.at in ("plan", "ended: done") and driver.role in DRIVERS
        if is_well and undisturbed(drivers, driver):
            yield driver


def has_failed(driver: Driver) -> bool:
    return driver.ended and "done" not in driver.at and not driver.at.endswith(TAKEN_BACK)


def driver_faults(drivers: tuple[Driver, ...]) -> Iterator[Violation]:
    for driver in drivers:
        if has_failed(driver) and undisturbed(drivers, driver):
            yield Violation(
                "stuck", f"the {driver.role} driver {driver.at}, though nobody took over"
            )


def undisturbed(drivers: tuple[Driver, ...], driver: Driver) -> bool:
    """No newer process works on the driver's tables."""
    newer = [other for other in drivers if other.epoch > driver.epoch]
    return not any(set(other.layer) & set(driver.layer) for other in newer)
