"""The invariants: for the tables in every state, for the whole pipeline when all drivers are at
rest, and for each driver that no other driver disturbs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.property.protocol.delta import EMPTIED, Commit, Log, World
from tests.property.protocol.past import (
    DECISIONS,
    awaits,
    decisions,
    in_force,
    lineage,
    live_files,
    operations,
    rebuild_under_way,
    reset_of,
)
from tests.property.protocol.scenario import (
    DRIVERS,
    LAYERS,
    TAKEN_BACK,
    Driver,
    Scenario,
    State,
)
from tests.property.protocol.sourcing import sequenced
from tests.property.protocol.tables import BUILT, sides_of, source_of, table_of, tables_of


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
    numbers = [one.n for one in decisions(world.log("control"))]
    if numbers != sorted({*numbers}, reverse=True):
        yield Violation("damage", f"decisions are numbered {numbers[::-1]}")
    for source in world.sources:
        yield from source_faults(scenario, world, source)


def source_faults(scenario: Scenario, world: World, source: str) -> Iterator[Violation]:
    """All that is wrong with the tables of one source, apart from their logs."""
    bronze, silver, gold = (table_of(kind, source) for kind in ("bronze", "silver", "gold"))
    yield from place_faults(world, source)
    if not awaits(world, gold):
        yield from operation_faults(world, source)
    for below, above in ((silver, bronze), (gold, silver)):
        settled = not awaits(world, below) and not awaits(world, above)
        if settled and world.head(below).n > world.head(above).n:
            yield Violation("damage", f"{below} is ahead of {above}")
    due = tables_due(scenario, world, source)
    for table, rows in due.items():
        try:
            held = world.read(live_files(world.log(table)))
        except KeyError as file:
            yield Violation("damage", f"{table} has lost the file {file}")
            continue
        if sorted(held) != sorted(rows):
            yield Violation("damage", f"{table} holds {sorted(held)}, prescribed is {sorted(rows)}")
    yield from count_faults(world, source, due)


def log_faults(world: World) -> Iterator[Violation]:
    """Epochs and generations never fall, positions only with a reset."""
    for table in world.tables:
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


def place_faults(world: World, source: str) -> Iterator[Violation]:
    """Operations in force have places in the order of their numbers, and none of them lies beyond
    bronze."""
    positions = [n for _, n in in_force(world.log("control"), source)]
    reach = bronze_to_be(world, source)[-1].n
    if positions != sorted(positions) or any(n > reach for n in positions):
        bronze = table_of("bronze", source)
        yield Violation("damage", f"operations in force at {positions}, and {bronze} at {reach}")


def force_faults(world: World) -> Iterator[Violation]:
    """The operations in force are those that a walk through all decisions leaves in force."""
    control = world.log("control")
    held = {(o, source) for source in world.sources for o, _ in in_force(control, source)}
    if held != (due := due_in_force(control)):
        yield Violation("damage", f"operations {sorted(held)} are in force, not {sorted(due)}")


def due_in_force(control: Log) -> set[tuple[int, str]]:
    """The operations that should be in force, each with a source, from one decision to the next."""
    version = next((v for v in range(len(control))[::-1] if control[v].kind in DECISIONS), None)
    if version is None:
        return set()
    last, before = control[version], due_in_force(control[:version])
    if last.kind == "drain":
        return before | {(last.n, source) for source, _ in last.position}
    if last.kind == "rebuild":
        return before
    if last.kind == "publication":
        return before - before_rebuild(control[:version], last)
    if last.origin == EMPTIED:
        return before
    savepoint = control[: last.origin + 1]
    stays = {one for one in before if table_of("bronze", one[1]) not in dict(last.wanted)}
    return due_in_force(savepoint) | {one for one in stays if one[0] > savepoint[-1].n}


def before_rebuild(control: Log, publication: Commit) -> set[tuple[int, str]]:
    """The operations that the publication of a rebuild leaves out of force: those of before the
    rebuild of a bronze table began, which is read again since."""
    begun = rebuild_under_way(control)
    if begun is None:
        return set()
    source = source_of(begun.wanted[0][0])
    return {(one.n, source) for one in operations(control) if one.n < begun.n}


def operation_faults(world: World, source: str = "") -> Iterator[Violation]:
    """Each operation that is in force is carried out once, at its place among the batches of the
    source."""
    gold = table_of("gold", source)
    past = [commit for _, commit in lineage(world.log(gold))][::-1]
    done = tuple((c.operation, c.n) for c in past if c.kind == "operation")
    # If a rebuild was published, the earlier operations are in the rebuild's log.
    decided = tuple(o for o in in_force(world.log("control"), source) if o[0] > past[0].operation)
    if done != decided[: len(done)]:
        yield Violation("damage", f"{gold}: operations (o, n) {[*done]}, decided {[*decided]}")


def tables_due(scenario: Scenario, world: World, source: str) -> dict[str, list[int]]:
    """The rows of each table up to its position, except for tables that await a reset."""
    tables = [table for table in tables_of((source,), BUILT) if not awaits(world, table)]
    # A side table may be ahead of its dense table, or have had no rows to commit.
    reach = {table: world.head(table).n for table in tables}
    sides = sides_of((source,))
    reach |= {side: max(reach[side], reach.get(of, 0)) for side, of in sides if side in reach}
    due: dict[str, list[int]] = {table: [] for table in tables}
    for row, batch, homes in prescribed(scenario, world, source):
        for table in (table_of(kind, source) for kind in ("bronze", *homes)):
            if table in due and batch.n <= reach[table]:
                due[table].append(row)
    return due


def prescribed(
    scenario: Scenario, world: World, source: str
) -> Iterator[tuple[int, Commit, tuple[str, ...]]]:
    """Each event of a source, its batch, and the kinds of tables that it belongs to. They depend
    only on bronze and on the operations in force."""
    closed, folded = -1, -1
    drains = list(in_force(world.log("control"), source))
    for row, batch in batches(world, source):
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


def bronze_to_be(world: World, source: str) -> Log:
    """The log of bronze. If it awaits a reset: up to the version that it goes back to."""
    bronze = table_of("bronze", source)
    log, reset = world.log(bronze), reset_of(world.log("control"), bronze)
    if reset is None or not awaits(world, bronze):
        return log
    return log[: dict(reset.wanted)[bronze] + 1] or (Commit(),)


def batches(world: World, source: str = "") -> Iterator[tuple[int, Commit]]:
    """Each event up to bronze's end, with the commit that brought it in."""
    past = reversed([commit for _, commit in lineage(bronze_to_be(world, source))])
    # If a rebuild of bronze was published, one commit stands for its first batches.
    commits = [c for c in past if c.kind == "data" or (c.kind == "reset" and c.origin == EMPTIED)]
    files = sequenced(world, source)
    for before, commit in zip([Commit(), *commits], commits, strict=False):
        for row in files[before.end : commit.end]:
            yield row, commit


def count_faults(world: World, source: str, due: dict[str, list[int]]) -> Iterator[Violation]:
    """A dense table counts its own rows and the rows of its side table, up to the same n."""
    bronze = table_of("bronze", source)
    if bronze in due and world.head(bronze).counts[0] != world.head(bronze).end:
        yield Violation("damage", f"{bronze} miscounts")
    position = {row: commit.n for row, commit in batches(world, source)}
    for side, dense in sides_of((source,)):
        if awaits(world, dense) or awaits(world, side):
            continue
        head = world.head(dense)
        counts = (len(due[dense]), sum(position[row] <= head.n for row in due[side]))
        if head.counts != counts:
            yield Violation("damage", f"{dense} counts {head.counts}, not {counts}")


def completion_faults(scenario: Scenario, state: State) -> Iterator[Violation]:
    """Once no driver has work, the running drivers of each table have processed all files, carried
    out every operation and done every reset. Only sources that fail are left behind."""
    tables = {table for driver in running(state.drivers) for table in driver.layer}
    if any(awaits(state.world, table) for table in tables):
        yield Violation("stuck", "a reset is left open")
    for source in state.world.sources:
        yield from left_undone(scenario, state.world, source, tables)


def left_undone(
    scenario: Scenario, world: World, source: str, tables: set[str]
) -> Iterator[Violation]:
    """What the owners of ``tables`` have not done for a source."""
    bronze, silver, gold = (table_of(kind, source) for kind in ("bronze", "silver", "gold"))
    end, n = (
        world.head(bronze).end,
        {table: world.head(table).n for table in (bronze, silver, gold)},
    )
    is_read = end == len(scenario.events_of(source)) or source in scenario.failing
    if bronze in tables and not is_read:
        yield Violation("stuck", "files are left unread")
    if source in scenario.damaged:
        return
    if silver in tables and n[silver] != n[bronze] and not awaits(world, bronze):
        yield Violation("stuck", "stages are left behind")
    if gold not in tables or awaits(world, silver):
        return
    if n[gold] != n[silver]:
        yield Violation("stuck", "stages are left behind")
    done, decided = world.head(gold).operation, in_force(world.log("control"), source)
    if any(number > done for number, at in decided if at <= n[gold]):
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
    """No newer process works on tables of the same kinds as the driver."""
    newer = [other for other in drivers if other.epoch > driver.epoch]
    kinds = set(LAYERS[driver.role])
    return not any(kinds & set(LAYERS[other.role]) for other in newer)


def zombie_faults(
    scenario: Scenario, world: World, drivers: tuple[Driver, ...]
) -> Iterator[Violation]:
    """Once a driver has started, no older one commits to tables of its layers, not even to those of
    a source that is not declared any more."""
    for newer in drivers:
        if newer.role not in DRIVERS or newer.at != "plan":
            continue
        tables = tables_of(scenario.sources, LAYERS[newer.role])
        for older in drivers:
            table = committing_to(older)
            if older.epoch >= newer.epoch or table is None or table not in tables:
                continue
            if not any(commit.app for commit in world.log(table)[older.handle + 1 :]):
                yield Violation("zombie", f"{table} would accept a commit of an older driver")


def committing_to(driver: Driver) -> str | None:
    """The table that a driver has a commit ready for."""
    return {
        "commit": driver.tables[0] if driver.tables else None,
        "record": table_of("files", driver.source),
        "decide commit": "control",
        "operation commit": table_of("gold", driver.source),
    }.get(driver.at)
