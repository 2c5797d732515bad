"""The model and the engine side by side: the same processes, the same schedule, the same commits.

A move takes a process to its next commit: until the commit is *prepared*, on a handle that may grow
old, or until it is made. After each commit the tables of both are at the same position. The engine
refuses what the model refuses, and a process that ends in one commits nothing more in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Literal

from headgate.declaration.kinds import kind_of
from headgate.driver.runtime import PipelineRuntime
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import RESET, ControlTable
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State, commit_time
from tests.property.protocol.delta import EMPTIED, TABLES, Commit, World
from tests.property.protocol.players import Player, Process, Theatre
from tests.property.protocol.routing import built
from tests.property.protocol.scenario import DRIVERS, TAKEN_BACK, Driver, Event, Scenario
from tests.property.protocol.steps import BEFORE, driver_steps, to_rest
from tests.support.arrow_tables import NOON
from tests.support.fake_stages import Record
from tests.support.lake import declared, put

READY = {
    "fence commit": "fence",
    "record": "files",
    "commit": "",
    "decide commit": "control",
    "ask commit": "control",
    "operation commit": "gold",
}
"""The steps at which a process of the model has a commit prepared, and the kind that the engine
reports then; "" stands for the kind of the table."""
AT_ONCE = ("reset commit",)
"""The steps at which the engine passes no failpoint before its commit, so it cannot wait there."""
WORDS = {
    "list": ("list",),
    "batch": ("refresh",),
    "double": ("refresh",),
    "close": ("decide",),
    "go": ("survey",),
}
"""What a driver at rest may do next, and the steps of the model that begin it."""


Move = Literal["lease", "prepare", "commit"]


class Mismatch(AssertionError):
    """The engine does what the model does not, or the reverse."""


class Lockstep:
    """``scripts`` are the words of the scenario's processes: those of a driver, and the number of
    the savepoint, oldest first, for a reread. The first ``alone`` processes run alone. At the end,
    the ``crew`` does the work that all others have left undone."""

    def __init__(
        self,
        folder: Path,
        scenario: Scenario,
        scripts: Sequence[str],
        crew: Sequence[str] = ("fused",),
        alone: int = 1,
    ) -> None:
        roles, self._crew, self._alone = (*scenario.roles, *crew), len(crew), alone
        self.scenario = replace(scenario, roles=roles, recorded=False, drains=9)
        self.world = World()
        self.pipeline = declared(folder)
        put(self.pipeline, *([record_of(event)] for event in scenario.events))
        self._root, self._ticks = folder / "root", count()
        self.layout = Layout.of(str(self._root), self.pipeline.name)
        spark: Any = None
        PipelineRuntime(spark, self.pipeline, self.layout, LAYERS).create()
        tables = tables_of(self.layout, self.pipeline.name)
        self._tables = {kind_of(table.name).name: table for table in tables}
        self._control = ControlTable(self._tables["control"].reader())
        most = len(scenario.events)
        work = f"list {'batch ' * most}{'go ' * most}"
        rest = (work if role in DRIVERS else "" for role in crew)
        self._scripts = [script.split() for script in (*scripts, *rest)]
        self._words = [list(script) for script in self._scripts]
        self.drivers = list(self.scenario.processes())
        self.players = [Player(self._play(number)) for number in range(len(roles))]
        self._theatre = Theatre(self.players)

    def _play(self, number: int) -> Any:
        role = self.drivers[number].role
        process = Process(self.pipeline, self._root, ticks=self._ticks)

        def play() -> None:
            epoch = self.drivers[number].epoch
            if role in DRIVERS:
                layers = LAYERS if role == "fused" else (role,)
                process.drive(layers, epoch, self._scripts[number])
            elif role == "savepoint":
                process.take()
            elif role == "rebuild":
                process.empty_gold(epoch)
            else:
                process.go_back(epoch, self._savepoint(number), reread=role == "reread")

        return play

    def play(self, schedule: Iterable[tuple[int, Move]]) -> None:
        """Run the moves of ``schedule``. Moves of processes that have ended are skipped."""
        with self._theatre.opened():
            for number in range(self._alone):
                self._run(number)
            for number, move in schedule:
                if self._may_move(number):
                    getattr(self, move)(number)
            crew = range(len(self.players) - self._crew, len(self.players))
            while any(map(self._may_move, crew)):
                for number in crew:
                    self._run(number, words=1)

    def by_chance(self, seed: int) -> Iterator[tuple[int, Move]]:
        """A schedule that ends when every process has done what it can."""
        chance, last = Random(seed), len(self.players) - self._crew
        moves: tuple[Move, ...] = ("commit", "commit", "prepare")
        while left := [number for number in range(last) if self._may_move(number)]:
            number = chance.choice(left)
            yield from ((number, chance.choice(moves)) for _ in range(chance.randint(1, 8)))

    def _run(self, number: int, words: int = 99) -> None:
        """Run a process as far as it gets with its next ``words`` words."""
        left = max(len(self._words[number]) - words, 0)
        while self._may_move(number):
            if self.drivers[number].at == "plan" and len(self._words[number]) == left:
                return
            self.commit(number)

    def lease(self, number: int) -> None:
        """Have a process take its epoch, if it has none."""
        driver = self.drivers[number]
        if driver.at == "lease":
            options = self._options(self.world, driver)
            self.world, self.drivers[number] = options[self._savepoint(number)]

    def _savepoint(self, number: int) -> int:
        """The place of the savepoint that a process restores among all, newest first."""
        if self.drivers[number].role != "reread":
            return 0
        return -1 - int("".join(self._scripts[number]) or 0)

    def _may_move(self, number: int) -> bool:
        driver = self.drivers[number]
        if driver.role in ("restore", "reread") and not self.world.savepoints:
            return False
        return not driver.ended and (driver.at != "plan" or bool(self._words[number]))

    def prepare(self, number: int) -> None:
        """Have a process prepare its next commit, if the engine can wait there."""
        world, driver, words = self._to_commit(number)
        if driver.at in AT_ONCE:
            return
        self.world, self.drivers[number], self._words[number] = world, driver, words
        if driver.at not in READY:
            self._rests(number)
            return
        player, wanted = self.players[number], READY[driver.at] or driver.tables[0]
        while player.ended is None and not player.has_prepared(wanted):
            self._goes_on(number)

    def commit(self, number: int) -> None:
        """Have a process make its next commit, or end."""
        self.prepare(number)
        world, driver, self._words[number] = self._to_commit(number)
        if driver.at not in READY and driver.at not in AT_ONCE:
            self.world, self.drivers[number] = world, driver
            self._rests(number)
            return
        self.drivers[number] = driver  # the engine's process reads its epoch here
        after, moved = self._options(world, driver)[0]
        if after.logs != world.logs:
            changed = next(t for t in TABLES if after.log(t) != world.log(t))
            if not self._commits(number, changed) and self._is_replaced(driver):
                # The engine reads its tables more often than the model: treat it as a process that
                # died here.
                self.world, self.drivers[number] = world, driver.end("fenced")
                return
            self.world, self.drivers[number] = after, moved
            self._compare(number, changed)
            return
        self.world, self.drivers[number] = after, moved
        if moved.ended:
            self._rests(number)
        else:  # a refused fence is tried again
            self.players[number].prepared.discard("fence")
            self._goes_on(number)

    def _to_commit(self, number: int) -> tuple[World, Driver, list[str]]:
        """The model's process at its next prepared commit, or when it has nothing more to do."""
        world, words = self.world, list(self._words[number])
        driver = self._as_read(self.drivers[number])
        while not driver.ended and driver.at not in READY and driver.at not in AT_ONCE:
            options = self._options(world, driver)
            ends = any(moved.at.endswith(TAKEN_BACK) for _, moved in options)
            if driver.at == "plan" and not ends:
                if not words:
                    break
                word = words.pop(0)
                if word == "savepoint":
                    saving = self.scenario.process("savepoint", BEFORE)
                    world, _ = to_rest(self.scenario, world, saving)
                    break
                begins = WORDS[word]
                options = [option for option in options if option[1].at in begins]
                if not options:
                    break
                # Of several ranges, take the shortest.
                options = options[-2:] if word == "double" else options[-1:]
            at = self._savepoint(number) if driver.at == "lease" else 0
            world, driver = options[at]
        return world, driver, words

    def _as_read(self, driver: Driver) -> Driver:
        """The engine reads the generation when it goes on after its last fence, the model in the
        same step as that fence. A reset may have been decided in between."""
        has_just_fenced = driver.at == "reset" and driver.tables == built(self.scenario, driver)
        if driver.role not in DRIVERS or not has_just_fenced:
            return driver
        return driver._replace(generation=self.world.head("control").generation)

    def _options(self, world: World, driver: Driver) -> list[tuple[World, Driver]]:
        return [(after, moved) for _, after, moved in driver_steps(self.scenario, world, driver)]

    def _is_replaced(self, driver: Driver) -> bool:
        return any(self.world.head(table).epoch > driver.epoch for table in driver.layer)

    def _commits(self, number: int, table: str) -> bool:
        """Whether the engine's process makes its next commit, to a table."""
        player = self.players[number]
        before = len(player.committed)
        while player.ended is None and len(player.committed) == before:
            self._theatre.go_on(player)
        if player.ended in ("FencedError", "CommitRefusedError") and not player.committed[before:]:
            return False
        if player.committed[before:] != [table]:
            raise self._mismatch(number, f"the model commits to {table}")
        return True

    def _rests(self, number: int) -> None:
        """The model's process ends or rests. The engine's process has to do the same without a
        commit."""
        player, driver = self.players[number], self.drivers[number]
        words = len(self._scripts[number]) - len(self._words[number])
        while player.ended is None and (driver.ended or player.rests <= words):
            self._goes_on(number)
        if player.ended == "broken":
            raise self._mismatch(number, "it should end") from player.error

    def _goes_on(self, number: int) -> None:
        player = self.players[number]
        before = len(player.committed)
        self._theatre.go_on(player)
        if len(player.committed) > before:
            raise self._mismatch(number, "the model commits nothing")

    def _compare(self, number: int, changed: str) -> None:
        for kind, table in self._tables.items():
            state, version = table.refresh(), len(self.world.log(kind)) - 1
            if (at := table.version) != version:
                raise self._mismatch(number, f"{kind} is at version {at}, not {version}")
            if kind == changed:
                found, wanted = self._position(kind, state), told(kind, self.world.head(kind))
                if found != wanted:
                    raise self._mismatch(number, f"{kind} is at {found}, not {wanted}")

    def _mismatch(self, number: int, what: str) -> Mismatch:
        driver, player = self.drivers[number], self.players[number]
        return Mismatch(
            f"{what}. Process {number}: {driver.role}, {driver.at}; in the engine it has "
            f"committed {player.committed}, ended: {player.ended} {player.error!r}"
        )

    def _position(self, kind: str, state: State) -> Commit:
        found = position(kind, state)
        if (kind, found.kind) != ("control", "data"):
            return found
        decision = self._control.refresh().rows[-1]
        (source,) = self.pipeline.sources
        if decision.kind == RESET:
            void = tuple((number, "") for number in decision.document["void"].get(source, ()))
            return told(kind, found._replace(kind="intent", void=void))
        return told(
            kind, found._replace(kind="drain", position=(("", decision.position[source].n),))
        )


def position(kind: str, state: State) -> Commit:
    """The state of one of the engine's tables in the model's terms: each event is a file of its
    own."""
    payload = state.payload
    read = payload if isinstance(payload, BronzePayload) else BronzePayload()
    said = Commit(
        kind=state.kind,
        epoch=state.epoch,
        generation=state.generation,
        since=state.from_n,
        n=state.n,
        end=state.n if kind == "files" else read.sequence,
        operation=state.operation,
        origin=EMPTIED if state.origin is None else state.origin,
    )
    if isinstance(payload, GoldPayload) and payload.closed_through is not None:
        minutes = (payload.closed_through - commit_time(NOON)) // 60_000_000
        said = said._replace(closed=minutes - 1)
    return told(kind, said)


def told(kind: str, commit: Commit) -> Commit:
    """A commit without the fields that the engine has in another form, such as file names and
    counts, and without those that only data commits have."""
    if commit.kind != "data":
        commit = commit._replace(since=0)
    if kind == "control":
        commit = commit._replace(origin=EMPTIED)
    return commit._replace(app=False, added=(), removed=(), counts=(0, 0), definition=0, wanted=())


def record_of(event: Event) -> Record:
    outcome = event.outcome(0)
    return Record(
        minute=event.window,
        bad=outcome == "bad",
        duplicate=outcome == "left out",
        late=outcome == "late",
    )
