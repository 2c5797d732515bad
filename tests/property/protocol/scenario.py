"""The input of a search: events in files, the processes that may run, and the rules left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.property.protocol.delta import Commit, Drains, Versions, World
from tests.property.protocol.rules import Rule

SIDES = {"quarantine": "silver", "late": "gold"}
UPSTREAM = {"silver": "bronze", "quarantine": "bronze", "gold": "silver", "late": "silver"}
UPWARDS: tuple[str, ...] = ("gold", "late", "silver", "quarantine", "control", "bronze", "files")
"""The order in which a savepoint reads them. Control tells which operations it contains."""
BUILT: tuple[str, ...] = ("bronze", "quarantine", "silver", "late", "gold")
"""The tables that may be reset, in the order in which they are."""
EVERY_TABLE: tuple[str, ...] = ("control", "files", *BUILT)
LAYERS = {
    "fused": EVERY_TABLE,
    "bronze": ("control", "files", "bronze"),
    "silver": ("quarantine", "silver"),
    "gold": ("late", "gold"),
    # Not drivers. ``reread`` is a restore that also takes bronze back; ``rebuild`` empties gold; a
    # savepoint only reads.
    "restore": EVERY_TABLE[::-1],
    "reread": EVERY_TABLE[::-1],
    "rebuild": EVERY_TABLE,
    "savepoint": (),
}
DRIVERS = ("fused", "bronze", "silver", "gold")
RESETTING = ("restore", "reread", "rebuild")
TAKEN_BACK = "its tables go back"
"""Why a driver ends although no other driver took over: a reset was requested after its start."""


class Event(NamedTuple):
    """One record, alone in its file: its window, and its outcome by each declaration: good, bad,
    late or left out (a duplicate, or filtered). The last of ``outcomes`` also applies to later
    declarations."""

    window: int = 0
    outcomes: tuple[str, ...] = ("good",)

    def outcome(self, definition: int) -> str:
        return self.outcomes[min(definition, len(self.outcomes) - 1)]


GOOD, BAD, LATE = Event(), Event(outcomes=("bad",)), Event(outcomes=("late",))
LEFT_OUT = Event(outcomes=("left out",))


@dataclass(frozen=True)
class Scenario:
    """``history``: the work that one driver of role ``before`` has done: batch (one event) |
    double (a batch of two) | close | savepoint | reread N, the number of a savepoint, oldest first.
    ``roles``: one process each; a later one may start at any moment, whatever the earlier ones are
    doing. ``finish``: the crews that run undisturbed, in this order, after all processes died;
    every crew is tried. ``recorded``: the files log holds all files from the start. ``drains``,
    ``compactions``: how many of them the drivers may do. ``copies``: a copy of every savepoint is
    made and runs as well."""

    events: tuple[Event, ...]
    roles: tuple[str, ...] = ("fused", "fused")
    definitions: tuple[int, ...] = ()
    finish: tuple[tuple[str, ...], ...] = (("fused",),)
    history: tuple[str, ...] = ()
    before: str = "fused"
    recorded: bool = True
    drains: int = 0
    compactions: int = 0
    copies: bool = False
    without: frozenset[Rule] = frozenset()

    def keeps(self, rule: Rule) -> bool:
        return rule not in self.without

    def definition_of(self, driver: int) -> int:
        return self.definitions[min(driver, len(self.definitions) - 1)] if self.definitions else 0

    def process(self, role: str, name: int) -> Driver:
        driver = Driver(role, name, self.definition_of(name))
        if role != "savepoint":
            return driver
        order = UPWARDS if self.keeps(Rule.CUT_UPWARDS) else UPWARDS[::-1]
        if not self.keeps(Rule.CUT_DECISIONS):
            order = (*(table for table in order if table != "control"), "control")
        return driver._replace(at="cut", tables=order)

    def processes(self) -> tuple[Driver, ...]:
        return tuple(self.process(role, name) for name, role in enumerate(self.roles))

    def world(self) -> World:
        """The world before the scenario's history."""
        world = World()
        if self.recorded:
            files = tuple(str(name) for name in range(len(self.events)))
            entry = Commit("data", added=files, end=len(files), n=len(files))
            world = world.commit("files", 0, entry) or world
        return world


class Driver(NamedTuple):
    """A process between two steps: the step it takes next, and what it holds in memory."""

    role: str
    name: int
    definition: int = 0
    at: str = "lease"
    epoch: int = 0
    tables: tuple[str, ...] = ()  # still to do in this phase
    handle: int = 0
    upto: int = 0  # n of the table above its stages, as it was read
    drains: Drains = ()  # as they were read
    target: int = 0  # n that its stages go to in this step
    lower: int = 0
    closed: int = -1
    using: int = 0  # the definition that its stages apply
    batch: tuple[int, int] = (0, 0)  # the source range in work, or the last one done
    staged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    counts: tuple[int, int] = (0, 0)
    asked: Commit | None = None  # the decision of the reset that it carries out
    then: str = ""  # the step after the resets that it carries out
    generation: int = 0  # control's, as it was when this driver fenced its tables
    versions: Versions = ()  # a savepoint: the versions that it has read; a restore: its targets

    @property
    def layer(self) -> tuple[str, ...]:
        return LAYERS[self.role]

    def end(self, why: str) -> Driver:
        """The process ends and loses its memory."""
        return Driver(self.role, self.name, self.definition, f"ended: {why}", self.epoch)

    def resting(self) -> Driver:
        """Between two batches, a driver remembers its position in the source."""
        held = Driver(self.role, self.name, self.definition, "plan", self.epoch)
        return held._replace(batch=self.batch, using=self.using, generation=self.generation)

    @property
    def ended(self) -> bool:
        return self.at.startswith("ended")


class State(NamedTuple):
    world: World
    drivers: tuple[Driver, ...]


Successor = tuple[World, Driver]
Step = Callable[[Scenario, World, Driver], Iterator[Successor]]
