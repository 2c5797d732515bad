"""A pipeline in random steps: batches, stages that lag, savepoints, restores, tables built anew,
drains, and maintenance in between. After any steps, every table has what follows from bronze."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headgate.declaration.load import load
from headgate.driver.lease import highest_table_epoch
from headgate.history.maintenance import retention
from headgate.history.savepoints.resets import Resets, ResetTarget
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import delete_savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.decisions import DECISIONS, ControlTable
from headgate.lake.tables.history import batches
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of, reset_to
from tests.support.rounds import ROUNDS
from tests.unit.history.maintenance.conftest import compacted, owned, vacuumed
from tests.unit.history.savepoints.conftest import here, take
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake, bronze, silver

pytestmark = pytest.mark.long

Batches = tuple[tuple[int, ...], ...]
BRONZE, SILVER, GOLD = "bronze/events", "silver/good", "gold/per_minute"


class Life:
    """``past`` has the offsets of each batch that bronze holds now. ``taken`` has the savepoints,
    each with ``past`` as it was then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "tiny.yml"
        file.write_text(DECLARATION)
        self.lake = Lake(folder / "lake", load(file))
        self.past: Batches = ()
        self.offset = 0
        self.minutes = 0
        self.taken: list[tuple[Savepoint, Batches]] = []

    def table(self, path: str) -> Table:
        return Table(self.lake.layout.storage, path, pipeline="tiny")

    def state(self, path: str) -> State:
        return self.table(path).refresh()

    # What a pipeline does

    def batch(self, rows: int, reaches: str) -> None:
        offsets = tuple(range(self.offset, self.offset + rows))
        self.offset += rows
        n = len(self.past) + 1
        counts = {"read": rows, "duplicate": 0, "differing": 0}
        self.lake.commit(BRONZE, n, [bronze(o) for o in offsets], counts)
        self.past = (*self.past, offsets)
        self.catch_up(reaches)

    def catch_up(self, reaches: str) -> None:
        """Bring tables up to each operation in turn, then up to the table above. With ``one``, gold
        takes only the next commit of silver."""
        if reaches != "bronze":
            for stop in self.stops(self.state(SILVER).n, len(self.past)):
                self.step(BRONZE, SILVER, stop)
        if reaches in ("one", "gold"):
            for stop in self.stops(self.state(GOLD).n, self.state(SILVER).n):
                if reaches == "one":
                    first = batches(self.table(SILVER), self.state(GOLD).n, stop)[0]
                    self.step(SILVER, GOLD, first.state.n)
                    return
                self.step(SILVER, GOLD, stop)

    def stops(self, after: int, upto: int) -> list[int]:
        asked = control_of(self.lake.layout.storage, "tiny").refresh().operations_of("events")
        drains = {o.n for o in asked if after < o.n < upto}
        return sorted({*drains, upto} if upto > after else set())

    def step(self, above: str, path: str, upto: int) -> None:
        held = self.state(path)
        found = self.read(self.table(above), held.n, upto)
        if path == SILVER:
            counts = {"silver": len(found), "filtered": 0, "quarantined": 0, "duplicate": 0}
            self.lake.commit(path, upto, [silver(o) for o in found], counts)
            return
        rows = [{"window_start": NOON + timedelta(seconds=o), "events": 1} for o in found]
        counts = {"pairs": len(found), "folded": len(found), "late": 0, "final": len(found)}
        self.lake.commit(path, upto, rows, counts)

    def read(self, source: Table, after: int, upto: int) -> list[int]:
        """The offsets of some batches, as a stage reads them."""
        found = []
        for file in (f for batch in batches(source, after, upto) for f in batch.files):
            with source.storage.open(file.path) as content:
                rows = pq.read_table(content)
            found += rows.column("offset" if source.name == BRONZE else "_offset").to_pylist()
        assert sorted(found) == self.offsets(after, upto)
        return found

    def offsets(self, after: int, upto: int) -> list[int]:
        return sorted(o for batch in self.past[after:upto] for o in batch)

    def drain(self) -> None:
        append(self.owned_control(), "drain", {}, here(self.lake), NOON)

    def build_anew(self, silver_too: bool) -> None:
        paths = ([SILVER] if silver_too else []) + ["late/per_minute", GOLD]
        control = self.owned_control()
        reset_to(control, {p: ResetTarget() for p in paths}, NOON)
        Resets(control).carry_out(owned(self.lake, *paths), NOON)

    def owned_control(self) -> ControlTable:
        (table,) = owned(self.lake, DECISIONS)
        return ControlTable(table)

    # What people do

    def take_savepoint(self) -> None:
        self.minutes += 1
        self.taken.append((take(self.lake, self.minutes), self.past))

    def go_back(self, which: int, reread: bool) -> None:
        if not self.taken:
            return
        savepoint, past = self.taken[which % len(self.taken)]
        # If bronze no longer has that past, it has to go back as well.
        reread = reread or self.past[: len(past)] != past
        epoch = 1 + highest_table_epoch(self.lake.layout, "tiny")
        restore_savepoint(
            self.lake.layout, self.lake.pipeline, savepoint, epoch, NOON, reread=reread
        )
        self.past = past if reread else self.past

    def forget_savepoint(self, which: int) -> None:
        if self.taken:
            each = self.taken.pop(which % len(self.taken))
            delete_savepoint(self.lake.layout, each[0])

    # Maintenance

    def maintain(self, merging: bool) -> None:
        if merging:
            compacted(self.lake)
        vacuumed(self.lake)
        for savepoint, past in self.taken:
            assert verify_savepoint(self.lake.layout, "tiny", savepoint) == ()
            self.a_copy_can_go_back_and_on(savepoint, past)
        for above, path in ((BRONZE, SILVER), (SILVER, GOLD)):
            self.stage_can_go_on(above, self.state(path).n)
            self.stage_can_go_on(above, 0)

    def a_copy_can_go_back_and_on(self, savepoint: Savepoint, past: Batches) -> None:
        """Restore a copy to the savepoint, with or without ``reread``, and let it go on from
        there."""
        other = copy.copy(self)
        root = self.folder / f"copy-{self.minutes}-{len(list(self.folder.iterdir()))}"
        shutil.copytree(self.folder / "lake", root)
        other.lake = Lake(root, self.lake.pipeline)
        other.go_back(self.taken.index((savepoint, past)), len(self.taken) % 2 == 0)
        other.catch_up("gold")
        other.every_table_holds_what_bronze_says()
        shutil.rmtree(root)

    def stage_can_go_on(self, above: str, after: int) -> None:
        table = self.table(above)
        for stop in self.stops(after, table.refresh().n):
            self.read(table, after, stop)
            after = stop

    # What must hold

    def every_table_holds_what_bronze_says(self) -> None:
        for path, column in ((BRONZE, "offset"), (SILVER, "_offset")):
            assert sorted(self.values(path, column)) == self.offsets(0, self.state(path).n)
        seconds = [(w - NOON).total_seconds() for w in self.values(GOLD, "window_start")]
        assert sorted(seconds) == self.offsets(0, self.state(GOLD).n)

    def values(self, path: str, column: str) -> list:  # type: ignore[type-arg]
        table = self.table(path)
        table.refresh()
        table.require_intact()
        found = []
        for file in live_files(table.handle):
            with table.storage.open(file.path) as content:
                found += pq.read_table(content, columns=[column]).column(column).to_pylist()
        return found

    def the_ledger_can_prove_it(self) -> None:
        assert by_id(self.lake.layout, self.lake.pipeline).holds


Act = tuple[str, tuple[object, ...]]
WEIGHTS = {
    "batch": 12,
    "catch_up": 2,
    "maintain": 5,
    "take_savepoint": 3,
    "go_back": 2,
    "forget_savepoint": 1,
    "drain": 1,
    "build_anew": 1,
    "the_ledger_can_prove_it": 1,
}
LIVES, ACTS = (ROUNDS, 30) if ROUNDS else (2, 20)


def acts(chance: random.Random, length: int) -> Iterator[Act]:
    def reaches() -> str:
        return chance.choice(["gold", "gold", "gold", "one", "silver", "bronze"])

    arguments: dict[str, Callable[[], tuple[object, ...]]] = {
        "batch": lambda: (chance.randint(0, 3), reaches()),
        "catch_up": lambda: (reaches(),),
        "maintain": lambda: (chance.random() < 0.8,),
        "go_back": lambda: (chance.randint(0, 9), chance.random() < 0.3),
        "forget_savepoint": lambda: (chance.randint(0, 9),),
        "build_anew": lambda: (chance.random() < 0.5,),
    }
    for name in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=length):
        yield name, arguments.get(name, tuple)()


@pytest.mark.parametrize("seed", range(LIVES))
def test_whatever_happens_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(retention, "WORTH_A_CHECKPOINT", 3)
    life = Life(tmp_path)
    done: list[Act] = []
    for name, arguments in acts(random.Random(seed), ACTS):
        done.append((name, arguments))
        try:
            getattr(life, name)(*arguments)
            life.every_table_holds_what_bronze_says()
        except Exception as error:
            error.add_note(f"after {done}")
            raise
