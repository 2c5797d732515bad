"""The input of a search: events in files, the processes that may run, and the rules left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.property.protocol.delta import Commit, Drains, Position, Versions, World
from tests.property.protocol.rules import Rule
from tests.property.protocol.tables import KINDS, ONE, table_of, tables_of

UPWARDS: tuple[str, ...] = ("gold", "late", "silver", "quarantine", "control", "bronze", "files")
"""The order in which a savepoint reads them. Control tells which operations it contains."""
EVERY_KIND = ("control", *KINDS)
LAYERS: dict[str, tuple[str, ...]] = {
    "fused": EVERY_KIND,
    "bronze": ("control", "files", "bronze"),
    "silver": ("quarantine", "silver"),
    "gold": ("late", "gold"),
    # Not drivers. ``reread`` is a restore that also takes bronze back; ``rebuild`` empties the gold
    # of one source; a savepoint only reads.
    "restore": EVERY_KIND[::-1],
    "reread": EVERY_KIND[::-1],
    "rebuild": EVERY_KIND,
    "savepoint": (),
}
DRIVERS = ("fused", "bronze", "silver", "gold")
RESETTING = ("restore", "reread", "rebuild")
TAKEN_BACK = "its tables go back"
"""Why a driver ends although no other driver took over: a reset was requested after its start."""


class Event(NamedTuple):
    """One record, alone in a file of its source: its window, and its outcome by each declaration:
    good, bad, late or left out (a duplicate, or filtered). The last of ``outcomes`` also applies to
    later declarations."""

    window: int = 0
    outcomes: tuple[str, ...] = ("good",)
    source: str = ""

    def outcome(self, definition: int) -> str:
        return self.outcomes[min(definition, len(self.outcomes) - 1)]


GOOD, BAD, LATE = Event(), Event(outcomes=("bad",)), Event(outcomes=("late",))
LEFT_OUT = Event(outcomes=("left out",))


@dataclass(frozen=True)
class Scenario:
    """``history``: the work that one driver of role ``before`` has done: batch (one event) |
    double (a batch of two) | close | savepoint | reread N, the number of a savepoint, oldest first
    | declare N, the number of a set of sources. ``roles``: one process each; a later one may start
    at any moment, whatever the earlier ones are doing. ``finish``: the crews that run undisturbed,
    in this order, after all processes died; every crew is tried. ``recorded``: the files log holds
    all files from the start. ``drains``, ``compactions``,
    ``publications``: how many of them the drivers may do. ``rebuilt``: the sources whose bronze may
    be rebuilt, each once; an operation may then touch the tables of one source alone.
    ``copies``: a copy of every savepoint is made and runs as well. ``in_turn``: a process starts
    when the one before it has ended; only savepoints run beside others.

    ``declared``: the sources that each process declares, as ``definitions``; all by default.
    ``failing``: the sources of which no batch can be read. ``damaged``: those whose silver and gold
    cannot go on. With several sources, a word of the
    history ends with the source of the batch."""

    events: tuple[Event, ...]
    roles: tuple[str, ...] = ("fused", "fused")
    definitions: tuple[int, ...] = ()
    finish: tuple[tuple[str, ...], ...] = (("fused",),)
    history: tuple[str, ...] = ()
    before: str = "fused"
    recorded: bool = True
    drains: int = 0
    compactions: int = 0
    publications: int = 0
    rebuilt: tuple[str, ...] = ()
    copies: bool = False
    in_turn: bool = False
    sources: tuple[str, ...] = ONE
    declared: tuple[tuple[str, ...], ...] = ()
    failing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    without: frozenset[Rule] = frozenset()

    def keeps(self, rule: Rule) -> bool:
        return rule not in self.without

    def definition_of(self, driver: int) -> int:
        return self.definitions[min(driver, len(self.definitions) - 1)] if self.definitions else 0

    def declared_by(self, driver: int) -> tuple[str, ...]:
        """The processes of a history have the names -1, -2 and so on."""
        place = driver if driver >= 0 else -1 - driver
        return self.declared[min(place, len(self.declared) - 1)] if self.declared else self.sources

    def events_of(self, source: str) -> tuple[int, ...]:
        return tuple(row for row, event in enumerate(self.events) if event.source == source)

    def process(self, role: str, name: int) -> Driver:
        sources = self.declared_by(name)
        at = "cut" if role == "savepoint" else "lease"
        return Driver(role, name, self.definition_of(name), sources, at, ends=(0,) * len(sources))

    def processes(self) -> tuple[Driver, ...]:
        return tuple(self.process(role, name) for name, role in enumerate(self.roles))

    def world(self) -> World:
        """The world before the scenario's history."""
        tables = tables_of(self.sources, EVERY_KIND)
        world = World(tables, ((Commit(),),) * len(tables))
        for source in self.sources if self.recorded else ():
            files = tuple(map(str, self.events_of(source)))
            entry = Commit("data", added=files, end=len(files), n=len(files))
            world = world.commit(table_of("files", source), 0, entry) or world
        return world


class Driver(NamedTuple):
    """A process between two steps: the step it takes next, and what it holds in memory."""

    role: str
    name: int
    definition: int = 0
    sources: tuple[str, ...] = ONE  # those that it declares
    at: str = "lease"
    epoch: int = 0
    tables: tuple[str, ...] = ()  # still to do in this phase
    handle: int = 0
    source: str = ""  # whose tables are in work
    others: tuple[str, ...] = ()  # the sources whose turn comes after it, in this phase
    upto: int = 0  # n of the table above its stages, as it was read
    drains: Drains = ()  # as they were read
    touched: tuple[str, ...] = ()  # the sources that the operation touches that it decides
    position: Position = ()  # that of the operation that it decides
    target: int = 0  # n that its stages go to in this step
    lower: int = 0
    closed: int = -1
    using: int = 0  # the definition that its stages apply
    ends: tuple[int, ...] = ()  # its position in each of its sources
    batch: tuple[int, int] = (0, 0)  # the source range in work
    staged: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    counts: tuple[int, int] = (0, 0)
    asked: Commit | None = None  # the decision of the reset that it carries out
    then: str = ""  # the step after the resets that it carries out
    generation: int = 0  # control's, as it was when this driver fenced its tables
    versions: Versions = ()  # a savepoint: the versions that it has read; a restore: its targets

    @property
    def layer(self) -> tuple[str, ...]:
        return tables_of(self.sources, LAYERS[self.role])

    def owns(self, kind: str) -> bool:
        return kind in LAYERS[self.role]

    def end(self, why: str) -> Driver:
        """The process ends and loses its memory."""
        end = f"ended: {why}"
        return Driver(self.role, self.name, self.definition, self.sources, end, self.epoch)

    def resting(self) -> Driver:
        """Between two batches, a driver remembers its position in the sources."""
        held = Driver(self.role, self.name, self.definition, self.sources, "plan", self.epoch)
        return held._replace(ends=self.ends, using=self.using, generation=self.generation)

    @property
    def ended(self) -> bool:
        return self.at.startswith("ended")


class State(NamedTuple):
    world: World
    drivers: tuple[Driver, ...]


Successor = tuple[World, Driver]
Step = Callable[[Scenario, World, Driver], Iterator[Successor]]
