"""The engine with one rule broken: a run in step with the model detects each broken rule."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from headgate.driver.stages import Stages
from headgate.flow.operations.carrying_out import Operations
from headgate.flow.silver.stage import SilverStage
from headgate.history.savepoints import resets
from headgate.history.savepoints.resets import BatchIdentity, ResetIntent, Resets, ResetTarget
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.tables import staging
from headgate.lake.tables.decisions import (
    DECISIONS,
    NO_DECISIONS,
    RESET,
    Decisions,
    Void,
    void_with,
)
from headgate.lake.tables.errors import CommitRefusedError
from headgate.lake.tables.history import batches
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.staging import Prepared
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.property.protocol.histories import history_faults
from tests.property.protocol.lockstep import Mismatch
from tests.property.protocol.test_lockstep import replayed
from tests.property.protocol.traces import Trace, stored
from tests.support.fake_stages import without_spark

pytestmark = pytest.mark.long

Broken = Callable[[pytest.MonkeyPatch], None]
BROKEN: dict[str, tuple[str, Broken]] = {}


def broken(rule: str, trace: str) -> Callable[[Broken], Broken]:
    """Registers a change that breaks ``rule``, and the mutant of the model whose trace detects
    it."""

    def named(change: Broken) -> Broken:
        BROKEN[rule] = trace, change
        return change

    return named


@broken("a step looks at the table's epoch", "EPOCH_CHECK-zombie")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Table.refresh

    def refresh(self: Table) -> State:
        epoch, self.epoch = self.epoch, 0
        try:
            return real(self)
        finally:
            self.epoch = epoch

    patch.setattr(Table, "refresh", refresh)


def look_again(table: Table) -> None:
    """Load the latest version of a table without a check whether it is fenced."""
    table._handle = DeltaTable(table.log.uri())
    table._version = table._handle.version()


@broken("a refused commit is not tried again on a new version", "REFUSED_ENDS-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Table.commit

    def commit(self: Table, *what: Any, **more: Any) -> State:
        try:
            return real(self, *what, **more)
        except CommitRefusedError:
            look_again(self)
            return real(self, *what, **more)

    patch.setattr(Table, "commit", commit)
    # The rows of the newer version would reveal it, too.
    patch.setattr("headgate.lake.tables.table.require_stated_rows", lambda *_: None)


@broken("a commit is made on the version of its step", "OLD_HANDLE-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Table.commit

    def commit(self: Table, *what: Any, **more: Any) -> State:
        look_again(self)
        return real(self, *what, **more)

    patch.setattr(Table, "commit", commit)


@broken("every commit has the table's transaction", "APP_TRANSACTION-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def properties(*, app_transactions: object = (), **more: Any) -> CommitProperties:
        return CommitProperties(**more)

    patch.setattr("headgate.lake.tables.table.CommitProperties", properties)


@broken("the commit of an operation has a second transaction", "SILVER_STOPS-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    def transaction(app: str, version: int) -> Transaction:
        return Transaction(app.removesuffix("/op"), version)

    patch.setattr("headgate.lake.tables.table.Transaction", transaction)


@broken("transactions have the generation in front", "ONE_DECISION-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "transaction_version", property(lambda state: state.n))


@broken("commits without data copy the position forward", "COPY_FORWARD-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def held(self: State, kind: Any, epoch: int) -> State:
        return State(self.payload.emptied(), kind=kind, epoch=epoch, definition=self.definition)

    patch.setattr(State, "held", held)


@broken("a reset is carried out once", "NEW_GENERATION-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    def asks(self: ResetIntent, path: str, generation: int) -> ResetTarget | None:
        return self.tables.get(path) if generation <= self.generation else None

    patch.setattr(ResetIntent, "asks", asks)


@broken("a reset raises the generation", "NEW_GENERATION-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    real = resets.reset_table
    patch.setattr(resets, "reset_table", lambda t, to, _, now: real(t, to, t.state.generation, now))


@broken("a reset takes the state of its target over", "TARGET_POSITION-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = resets._back

    def back(table: Table, held: State, target: ResetTarget) -> Any:
        found = real(table, held, target)
        return replace(found, state=replace(found.state, n=held.n))

    patch.setattr(resets, "_back", back)


@broken("side tables go back with their tables", "SIDES_TOO-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Savepoint.targets

    def targets(self: Savepoint) -> dict[str, ResetTarget]:
        sides = ("quarantine/", "late/")
        return {p: t for p, t in real(self).items() if not p.startswith(sides)}

    patch.setattr(Savepoint, "targets", targets)


@broken("a restore leaves bronze only where bronze has its past", "SAME_PAST-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Savepoint, "is_of_lineage", lambda *_: True)


@broken("a batch is known by its generation and its number", "BATCH_IDENTITY-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def is_of_lineage(decisions: Decisions, source: str, batch: BatchIdentity) -> bool:
        resets = map(ResetIntent.of, decisions.of(RESET))
        ends = (each.back_to.get(source) for each in resets if each.generation > batch.generation)
        return all(end.n >= batch.n for end in ends if end is not None)

    patch.setattr("headgate.history.savepoints.savepoint.is_of_lineage", is_of_lineage)


@broken("a table awaits the newest reset that names it", "NEWEST_BY_TABLE-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = resets.reset_intents

    def intents(decisions: Decisions) -> dict[str, ResetIntent]:
        newest = decisions.reset
        return {p: i for p, i in real(decisions).items() if newest and i == ResetIntent.of(newest)}

    patch.setattr(resets, "reset_intents", intents)


def void_otherwise(patch: pytest.MonkeyPatch, void: Callable[..., Void]) -> None:
    patch.setattr("headgate.history.savepoints.restore.void_after_restore", void)


@broken("later operations are void if bronze goes back", "VOID_LATER-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def void(decisions: Decisions, saved: int, sources: Iterable[str], _: object) -> Void:
        return resets.void_after_restore(decisions, saved, sources, {})

    void_otherwise(patch, void)


@broken("what was void at a savepoint is void again", "VOID_AGAIN-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def void(decisions: Decisions, saved: int, *more: Any) -> Void:
        found = resets.void_after_restore(decisions, saved, *more)
        return {source: [o for o in void if o > saved] for source, void in found.items()}

    void_otherwise(patch, void)


@broken("what was in force at a savepoint is in force again", "IN_FORCE_AGAIN-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    def void(decisions: Decisions, *more: Any) -> Void:
        return void_with(decisions.void, resets.void_after_restore(decisions, *more))

    void_otherwise(patch, void)


@broken("control is fenced", "CONTROL_FENCED-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Table.fence

    def fence(self: Table, epoch: int) -> State:
        if self.name == DECISIONS:
            self.epoch = epoch
            return self.refresh()
        return real(self, epoch)

    patch.setattr(Table, "fence", fence)


@broken("decisions are read after the position", "DECISIONS_READ_LAST-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Stages.catch_up

    def catch_up(self: Stages, *how: Any) -> bool:
        control, earlier = self._control, vars(self).get("earlier", NO_DECISIONS)
        vars(self)["earlier"] = known = control.refresh()
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(control, "_known", earlier)
            inner.setattr(control, "refresh", lambda: earlier)
            try:
                return real(self, *how)
            finally:
                control._known = known

    patch.setattr(Stages, "catch_up", catch_up)


@broken("reading batches back goes on at the version that was restored", "LINEAGE-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    def found_at(storage: Any, version: int) -> Any:
        found = read_commit(storage, version)
        if found is None or found.state.kind != "reset":
            return found
        return replace(found, state=replace(found.state, origin=version - 1))

    patch.setattr("headgate.lake.tables.history.read_commit", found_at)


@broken("a step takes every batch", "RESET_ENDS-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("headgate.lake.tables.history.batches", lambda *which: batches(*which)[-1:])


@broken("no step of silver passes an operation", "SILVER_STOPS-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    real = SilverStage.catch_up

    def catch_up(self: SilverStage, upto: int, operations: Operations, *more: Any) -> None:
        real(self, upto, replace(operations, asked=()), *more)

    patch.setattr(SilverStage, "catch_up", catch_up)


@broken("side tables are committed first", "SIDE_FIRST-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    real = staging.prepare_together

    def commit(self: Prepared) -> State:
        committed = self.table.commit(self.state, add=self.add, remove=self.remove)
        if self.side is not None:
            self.side.commit()
        return committed

    module = sys.modules[SilverStage.__module__]
    patch.setattr(module, "prepare_together", lambda *p: real(*p)[::-1])
    patch.setattr(Prepared, "commit", commit)


@broken("side tables are fenced", "FENCE_EVERY_TABLE-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    real = Table.fence

    def fence(self: Table, epoch: int) -> State:
        if self.name.startswith(("quarantine/", "late/")):
            self.epoch = epoch
            return self.refresh()
        return real(self, epoch)

    patch.setattr(Table, "fence", fence)


@broken("a reset that is asked for is carried out", "RESET_AT_START+RESET_ENDS-stuck")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Resets, "carry_out", lambda *_: None)


@broken("gold waits for a silver table that has a reset to do", "GOLD_WAITS-damage")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Resets, "awaits", lambda *_: False)


def finds(folder: Path, trace: Trace) -> bool:
    try:
        lockstep = replayed(folder, trace)
    except Mismatch:
        return True
    return bool(history_faults(lockstep.layout, lockstep.pipeline))


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_engine_falls_out_of_step(tmp_path: Path, rule: str) -> None:
    trace, change = BROKEN[rule]
    with without_spark(), pytest.MonkeyPatch.context() as patch:
        change(patch)
        assert finds(tmp_path, next(t for t in stored() if t.name == trace))
