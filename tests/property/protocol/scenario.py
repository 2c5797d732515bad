"""What a search plays: events in files, the drivers that may run, and the rules left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.property.protocol.delta import Commit, World
from tests.property.protocol.rules import Rule

SIDES = {"quarantine": "silver", "late": "gold"}
UPSTREAM = {"silver": "bronze", "quarantine": "bronze", "gold": "silver", "late": "silver"}
LAYERS = {
    "fused": ("files", "bronze", "quarantine", "silver", "late", "gold"),
    "bronze": ("files", "bronze"),
    "silver": ("quarantine", "silver"),
    "gold": ("late", "gold"),
}


class Event(NamedTuple):
    """One record, alone in its file: the window it falls in, and good, bad or late by each
    declaration. Only the last of ``outcomes`` counts for declarations beyond it."""

    window: int = 0
    outcomes: tuple[str, ...] = ("good",)

    def outcome(self, definition: int) -> str:
        return self.outcomes[min(definition, len(self.outcomes) - 1)]


GOOD, BAD, LATE = Event(), Event(outcomes=("bad",)), Event(outcomes=("late",))


@dataclass(frozen=True)
class Scenario:
    """``roles``: one process each; a later one may start at any moment, whatever the earlier
    ones are doing. ``finish``: who runs undisturbed after all of them died. ``recorded``: the
    files log holds all files from the start; ``batches``: so many of them are in bronze, one in
    each batch. ``closings``, ``compactions``: how many of them the drivers may do."""

    events: tuple[Event, ...]
    roles: tuple[str, ...] = ("fused", "fused")
    definitions: tuple[int, ...] = ()
    finish: tuple[str, ...] = ("fused",)
    recorded: bool = True
    batches: int = 0
    closings: int = 0
    compactions: int = 0
    without: frozenset[Rule] = frozenset()

    def keeps(self, rule: Rule) -> bool:
        return rule not in self.without

    def definition_of(self, driver: int) -> int:
        return self.definitions[driver] if self.definitions else 0

    def start(self) -> State:
        names = range(len(self.roles))
        drivers = tuple(Driver(self.roles[i], i, self.definition_of(i)) for i in names)
        world = World()
        if self.recorded:
            files = tuple(str(name) for name in range(len(self.events)))
            entry = Commit("data", added=files, end=len(files), n=len(files))
            world = world.commit("files", 0, entry) or world
        for batch in range(1, self.batches + 1):
            path, counts = f"bronze/{batch}", (batch, 0)
            entry = Commit("data", True, 0, batch - 1, batch, (path,), counts=counts, end=batch)
            world = world.write(path, (batch - 1,)).commit("bronze", batch - 1, entry) or world
        return State(world, drivers)


class Driver(NamedTuple):
    """A process between two steps: the step it takes next, and what it holds in memory."""

    role: str
    name: int
    definition: int = 0
    at: str = "lease"
    epoch: int = 0
    tables: tuple[str, ...] = ()  # still to do, in this phase
    handle: int = 0
    target: int = 0  # n that the stages go to
    lower: int = 0
    closed: int = -1
    using: int = 0  # the definition that its stages apply
    batch: tuple[int, int] = (0, 0)  # the source range in work, or the last one done
    staged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    counts: tuple[int, int] = (0, 0)

    @property
    def layer(self) -> tuple[str, ...]:
        return LAYERS[self.role]

    def end(self, why: str) -> Driver:
        """The process is gone, and its memory with it."""
        return Driver(self.role, self.name, self.definition, f"ended: {why}", self.epoch)

    @property
    def ended(self) -> bool:
        return self.at.startswith("ended")


class State(NamedTuple):
    world: World
    drivers: tuple[Driver, ...]


Successor = tuple[World, Driver]
Step = Callable[[Scenario, World, Driver], Iterator[Successor]]


def onward(driver: Driver, tables: tuple[str, ...]) -> Driver:
    """To the next of these tables, or past the last one."""
    past = "operate" if "gold" in driver.layer else "plan"
    return driver._replace(at="refresh" if tables else past, tables=tables, staged=(), replaced=())


def stages(scenario: Scenario, driver: Driver) -> tuple[str, ...]:
    """The tables that this driver brings level with bronze, in their order."""
    tables = tuple(table for table in driver.layer if table in UPSTREAM)
    if scenario.keeps(Rule.SIDE_FIRST):
        return tables
    pairs = zip(tables[::2], tables[1::2], strict=True)
    return tuple(table for side, dense in pairs for table in (dense, side))
