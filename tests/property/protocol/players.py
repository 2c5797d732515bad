"""Processes of the engine that run on request, from one commit to the next.

Each runs in a thread of its own and waits at failpoints: when a commit is prepared, and after each
commit. Only one of them runs at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.declaration.kinds import kind_of
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.history.savepoints.resets import Resets, ResetTarget, decide_reset
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint, savepoints
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, position_of
from headgate.lake.tables.snapshot import tables_of
from tests.property.protocol.delta import TABLES
from tests.support.failing import Died, passing
from tests.support.lake import Lake

PATIENCE = 60  # seconds
BESIDE = {"silver", "quarantine"}
"""The kinds of tables whose commits are prepared at the same time, by several threads."""
REST = "rest"
"""The failpoint at which a driver waits between two words."""


@dataclass
class Process(Lake):
    """Does with the engine what a process of the model does. Its epoch is an argument: the model's
    lease gives it. All processes share one clock, ``ticks``."""

    ticks: Iterator[int] = field(kw_only=True)

    def __post_init__(self) -> None:
        self.layout = Layout.of(str(self.root), self.pipeline.name)

    def clock(self) -> datetime:
        return self.now + timedelta(milliseconds=next(self.ticks))

    def drive(self, layers: Sequence[str], epoch: int, words: Sequence[str]) -> None:
        self.epoch = epoch - 1
        self.start(layers)
        if "bronze" in layers:
            self.catch_up()
        for word in words:
            failpoint(REST)
            if word == "list":
                if "bronze" in layers:
                    self.list_new()
            elif word == "savepoint":
                self.take()
            elif word == "close":
                self.drain()
            elif word == "go":
                self.catch_up()
            elif "bronze" in layers and self.position < self.last_sequence:
                self.ingest(self.position + (2 if word == "double" else 1))
                self.catch_up()

    def take(self) -> None:
        create_savepoint(self.layout, self.pipeline, self.clock())

    def go_back(self, epoch: int, at: int, *, reread: bool) -> None:
        found = [s for s in savepoints(self.layout) if isinstance(s, Savepoint)]
        restore_savepoint(self.layout, self.pipeline, found[at], epoch, self.clock(), reread=reread)

    def empty_gold(self, epoch: int) -> None:
        """Reset gold and its late rows to empty tables, so that they are rebuilt."""
        found = {kind_of(t.name).name: t for t in tables_of(self.layout, self.pipeline.name)}
        tables = [found[name] for name in TABLES]
        for table in tables:
            table.fence(epoch)
        control, now = ControlTable(found["control"]), self.clock()
        decide_reset(
            control,
            {found[name].name: ResetTarget() for name in ("late", "gold")},
            position_of(dict.fromkeys(self.pipeline.sources, found["bronze"])),
            now,
            why="a test",
            void=control.refresh().void,
        )
        Resets(control).carry_out(tables, now)


class Player:
    """``prepared``: the kinds of tables for which the process has a commit ready. ``committed``:
    the kinds of tables of its commits. ``rests``: how often it has rested. ``ended``: how it
    ended."""

    def __init__(self, play: Callable[[], None]) -> None:
        self._play = play
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._may_go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self._changed = threading.Condition()
        self._killed = False
        self.prepared: set[str] = set()
        self.committed: list[str] = []
        self.rests = 0
        self.ended: str | None = None
        self.error: BaseException | None = None

    def go_on(self) -> None:
        """Run until a commit is prepared or made, or until the process rests or ends."""
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._may_go.release()
        assert self._waits.acquire(timeout=PATIENCE), "it neither waits nor ends"

    def has_prepared(self, kind: str) -> bool:
        """Whether the process has a commit of ``kind`` prepared. Waits if another thread may
        prepare it."""
        with self._changed:
            comes = kind in BESIDE and self.prepared & BESIDE and self.ended is None
            wait = PATIENCE if comes else 0
            return self._changed.wait_for(lambda: kind in self.prepared, wait)

    def kill(self) -> None:
        if self._thread.ident is not None and self.ended is None:
            self._killed = True
            self.go_on()

    def passes(self, place: str) -> None:
        kind, _, what = place.rpartition(".")
        with self._changed:
            if what == "committed":
                self.committed.append(kind)
                self.prepared -= {kind, "fence"}
            elif place == REST:
                self.rests += 1
            else:
                self.prepared.add(kind or place)
            self._changed.notify_all()
        if threading.get_ident() == self._thread.ident:
            self._waits.release()
            self._may_go.acquire()
            if self._killed:
                raise Died(place)

    def _run(self) -> None:
        try:
            self._play()
            self.ended = "done"
        except HeadgateError as error:
            self.ended, self.error = type(error).__name__, error
        except Died:
            self.ended = "killed"
        except BaseException as error:
            self.ended, self.error = "broken", error
        self._waits.release()


class Theatre:
    """Lets one player go on at a time."""

    def __init__(self, players: Sequence[Player]) -> None:
        self.players = players
        self._playing: Player | None = None

    def go_on(self, player: Player) -> None:
        self._playing = player
        player.go_on()

    @contextmanager
    def opened(self) -> Iterator[None]:
        with passing(self._passes):
            try:
                yield
            finally:
                for player in self.players:
                    self._playing = player
                    player.kill()

    def _passes(self, place: str) -> None:
        waits = place in ("fence", REST) or place.endswith((".staged", ".committed"))
        if self._playing is not None and waits and place != "operation.staged":
            self._playing.passes(place)
