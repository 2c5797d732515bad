"""Validates each version of a gold table before it becomes visible."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import operator_of, shown_key
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.expectations.validation import validate
from headgate.declaration.kinds import GOLD, LATE, SILVER, name_of
from headgate.declaration.model import GoldTable
from headgate.declaration.suites.model import Rule, Suite
from headgate.declaration.suites.versions import SILVER_SUM
from headgate.failpoints import failpoint
from headgate.flow.gates import documents
from headgate.flow.gates.broken_rows import BrokenRows, broken_rows, readers_rows
from headgate.flow.gates.documents import SHOWN, Hold, Rejection, Release, Releases, gate_name
from headgate.flow.gates.releases import MOST_ROWS, with_releases, with_tokens
from headgate.flow.gates.silver_sums import SilverSums
from headgate.flow.gates.validations import Validation, ValidationLog
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import HeldError
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_changes import NO_ROWS, RowChanges
from headgate.lake.tables.state import State, time_of
from headgate.lake.tables.table import Table, TableOf

PAUSE = 10
"""A held table is tried again after a pause of this many times the duration of the last try. Each
try folds the held batches again, and a long hold must not slow down the stream."""


class TableGate:
    """The gate of one gold table, which calls it before each commit (``Table.gate``).

    ``is_visible``: readers see each commit. The rebuild of a table becomes visible only when it has
    processed all batches, so only its last step is validated, even if it has no rows: no other
    version of it is published (``history.savepoints.rebuilds.rebuild_targets``).

    ``window`` and ``by`` are the columns that identify a row.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        table: Table,
        suite: Suite,
        sums: SilverSums | None,
        window: Sequence[str],
        by: Sequence[str],
        *,
        is_visible: bool,
    ) -> None:
        self._layout, self._table, self._suite, self._sums = layout, table, suite, sums
        # A rebuild has its own documents: a release of the current table is not for it.
        self._name = gate_name(name_of(table.name), is_rebuild=not is_visible)
        self._log = "" if is_visible else table.log.root.removeprefix(f"{layout.storage.root}/")
        self._spark, self._rows = spark, TableRows(spark, table)
        self._window, self._by = tuple(window), tuple(by)
        self._validations = ValidationLog(layout, name_of(table.name))
        self._releases = Releases(layout, name_of(table.name))
        self._is_visible = is_visible
        self._upto, self._next = 0, 0.0
        found = documents.hold_reason(layout, self._name)
        self._hold = found if found is not None and found.log == self._log else None

    @property
    def wants_all(self) -> bool:
        return not self._is_visible

    def is_due(self, upto: int) -> bool:
        """Whether the table may be brought up to batch id ``upto`` now. It may not if it is held
        and was tried a short time ago, unless a person requests it."""
        self._upto = upto
        if self._hold is None or time.monotonic() >= self._next:
            return True
        return (
            documents.retry_asked(self._layout, self._name)
            or self._release() is not None
            or self.rejection() is not None
        )

    def rejection(self) -> Rejection | None:
        """What a person has rejected of what the table is held by, and no longer may become
        visible."""
        if self._hold is None or not self._is_visible:
            return None
        given, held = documents.rejected(self._layout, self._name), self._table.state
        if given is None or given.generation != held.generation:
            return None
        return given if held.operation < given.operation else None

    def stops(self, upto: int) -> tuple[int, ...]:
        """The batch ids before ``upto`` at which a step has to end: the end of a release, if there
        is one."""
        given = self._release()
        if given is None or not self._is_visible:
            return ()
        return (given.upto,) if self._table.state.n < given.upto < upto else ()

    def __call__(self, state: State, add: Sequence[DataFile], remove: Sequence[DataFile]) -> State:
        """The state of a commit that may become visible, with the result of the gate. Raises
        HeldError if the version breaks a rule that holds and nobody has released it."""
        began = time.monotonic()
        payload = GoldPayload.of(state)
        if not self._is_asked(payload, state, add):
            return state
        now = time_of(state.at)
        version = self._version(add, remove)
        results, rows = self._validated(version, state.n, now), NO_ROWS
        given = self._release_for(state) if any(each.holds for each in results) else None
        if given is None:
            results, rows = self._judged(results, version, state)
        failpoint("gate.validated")
        failed = [result for result in results if result.holds]
        self._record(state, now, results, given, rows)
        if failed and given is None:
            self._held_by(results, state, now, rows)
            self._next = time.monotonic() + PAUSE * (time.monotonic() - began)
            raise HeldError(f"{self._table.name} is held: {'; '.join(map(str, failed))}")
        gate = {
            "suite": self._suite.digest,
            "at": state.at,
            "n": state.n,
            "operation": state.operation,
            "broken": [r.rule for r in results if not r.met],
            "released": given.document() if given is not None else None,
            "earlier": self._earlier(results),
        }
        return replace(state, payload=replace(payload, gate=gate))

    def _judged(
        self, results: tuple[RuleResult, ...], version: DataFrame, state: State
    ) -> tuple[tuple[RuleResult, ...], RowChanges]:
        """The results, released where releases accept what breaks rules; and all other rows."""
        if not any(result.holds for result in results):
            return results, NO_ROWS
        rules = {rule.id: rule for rule in self._suite.rules}
        asked = [rules[each.rule] for each in results if each.holds and each.error is None]
        found = self._broken_rows(version, asked)
        name = f"version:{self._log}:{state.generation}.{state.n}.{state.operation}"

        def with_all(result: RuleResult) -> RuleResult:
            digests = found.digests.get(result.rule)
            # Rows that another implementation counts otherwise are not known.
            is_known = digests is not None and len(digests) == result.unexpected
            rule = rules[result.rule]
            return with_tokens(result, rule, digests if is_known else None, name)

        listed = tuple(with_all(each) if each.holds else each for each in results)
        given = self._releases.all()
        accepted = {token for each in given for token in each.accepted}
        own = [each for each in given if each.log == self._log] if self._log else []
        of_rebuild = {token for each in own for token in each.accepted}
        results = with_releases(listed, rules, accepted, of_rebuild)
        left = found.without((rules[each.rule] for each in results if each.holds), accepted)
        total = len(left) if len(found.rows) <= MOST_ROWS else None
        shown = RowChanges(self._window, self._by, found.columns, left[:SHOWN], total)
        return results, shown

    def _broken_rows(self, version: DataFrame, rules: Sequence[Rule]) -> BrokenRows:
        key = (*self._window, *self._by)
        if self._is_visible:
            visible = self._version((), ())
        else:
            visible = readers_rows(self._spark, self._table, version, key)
        return broken_rows(version, visible, rules, key)

    def _earlier(self, results: Sequence[RuleResult]) -> list[Mapping[str, Any]]:
        """Who has released what breaks rules in a version that becomes visible, when and why."""
        tokens = {token for each in results if each.is_released for token in each.accepts}
        given = self._releases.all() if tokens else ()
        return [
            {"by": each.by, "at": each.at.isoformat(), "reason": each.reason}
            for each in given
            if not tokens.isdisjoint(each.accepted)
        ]

    def _validated(self, version: DataFrame, n: int, now: datetime) -> tuple[RuleResult, ...]:
        """The results of the suite, in the order of its rules."""
        rules = self._suite.rules
        compared = [rule for rule in rules if rule.expectation == SILVER_SUM]
        others = [rule for rule in rules if rule.expectation != SILVER_SUM]
        found = validate(version, others, now)
        if self._sums is not None:
            found = (*found, *self._sums.validate(version, compared, n))
        by_rule = {result.rule: result for result in found}
        return tuple(by_rule[rule.id] for rule in rules)

    def passed(self) -> None:
        """End a hold: the table has reached the batch id of the last call of ``is_due``."""
        if self._hold is not None:
            documents.let_go(self._layout, self._name)
            documents.use_up(self._layout, self._name)
            self._hold = None

    def _is_asked(self, payload: GoldPayload, state: State, add: Sequence[DataFile]) -> bool:
        """Whether a commit has to be validated. ``every`` and ``on: final`` are about batches: an
        operation is always validated."""
        if not self._is_visible:
            return state.n >= self._upto
        if self._hold is not None or state.kind == "operation":
            return True
        if self._suite.on_final and not any(file.is_final for file in add):
            return False
        last = payload.gate
        if last is None or last["suite"] != self._suite.digest:
            return True
        # If the clock was set back, the time is negative. The commit is then validated.
        passed = time_of(state.at) - time_of(last["at"])
        return not timedelta(0) <= passed < self._suite.every

    def _release(self) -> Release | None:
        """A release that the table has not used up yet."""
        if self._hold is None and self._is_visible:
            return None  # only a held table can have one
        given = documents.released(self._layout, self._name)
        held = self._table.state
        if given is None or given.log != self._log:
            return None
        if self._is_visible and given.generation != held.generation:
            return None  # from before a reset
        is_open = (held.n, held.operation) < (given.upto, given.operation)
        return given if not self._is_visible or is_open else None

    def _release_for(self, state: State) -> Release | None:
        """The release that lets the version with this state become visible."""
        given = self._release()
        if given is None:
            return None
        return given if (state.n, state.operation) <= (given.upto, given.operation) else None

    def _record(
        self,
        state: State,
        now: datetime,
        results: Sequence[RuleResult],
        given: Release | None,
        rows: RowChanges,
    ) -> None:
        found = Validation(
            table=name_of(self._table.name),
            n=state.n,
            version=self._table.version + 1,
            at=now,
            suite=self._suite,
            results=tuple(replace(each, accepts=()) for each in results),
            released=given and replace(given, accepted=()),
            log=self._log,
            operation=state.operation,
            generation=state.generation,
            rows=rows.first(),
        )
        self._validations.record(found)

    def _held_by(
        self, results: Sequence[RuleResult], state: State, now: datetime, rows: RowChanges
    ) -> None:
        before, n = self._hold, self._table.state.n
        since = before.since if before is not None and before.n == n else now
        table = name_of(self._table.name)
        version = state.operation, state.generation
        self._hold = Hold(table, n, state.n, since, now, tuple(results), self._log, *version)
        documents.hold(self._layout, self._hold, rows)
        if not self._is_visible:  # what it accepts is kept; it lets no later version pass
            documents.use_up(self._layout, self._name)
        documents.retried(self._layout, self._name)

    def _version(self, add: Sequence[DataFile], remove: Sequence[DataFile]) -> DataFrame:
        """All rows of the table after a commit, as readers would see them."""
        gone = {file.path for file in remove}
        files = [*(f for f in live_files(self._table.handle) if f.path not in gone), *add]
        parts = [
            self._rows.of([f for f in files if f.is_final is final]).withColumn(FINAL, F.lit(final))
            for final in (True, False)
        ]
        return parts[0].unionByName(parts[1])


def gate_of(
    spark: SparkSession, layout: Layout, declared: GoldTable, table: TableOf, *, is_visible: bool
) -> TableGate | None:
    """The gate of a gold table; None if it has no suite."""
    if declared.suite is None:
        return None
    sums = None
    if not declared.is_rollup and not operator_of(declared).appends:
        silver, late = table(SILVER.path(declared.silver)), table(LATE.path(declared.name))
        sums = SilverSums(spark, declared, silver, late)
    gold = table(GOLD.path(declared.name))
    key = shown_key(declared)
    return TableGate(spark, layout, gold, declared.suite, sums, *key, is_visible=is_visible)
