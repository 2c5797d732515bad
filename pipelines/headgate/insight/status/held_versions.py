"""The gold versions that rules hold back, as a person decides about them: which of them can be
given up, and what to do about the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from headgate.commands import pipeline_command
from headgate.declaration.contracts.operation import is_rejected, operation_named
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.files import declaration_words
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.suites.plan import asked
from headgate.errors import HeadgateError, UsageError
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold, Rejection
from headgate.history.loads import requests as loads
from headgate.history.savepoints.rebuilds import begun_rebuild
from headgate.lake.storage.documents import Document, encoded, new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, Operation
from headgate.lake.tables.row_changes import RowChanges


@dataclass(frozen=True)
class HeldVersion:
    """``what`` would become visible, which declaration it was ``computed_by``, and the first
    ``rows`` that break rules."""

    hold: Hold
    what: str
    computed_by: str
    rows: RowChanges

    @property
    def count(self) -> str:
        """How many rows break rules, and how many of them are shown."""
        if self.rows.rows:
            return self.rows.count
        if any(result.unexpected for result in self.hold.failed):
            return "the rows are being validated again: look again"
        return "no single row breaks these rules: they are about the whole table"

    def document(self) -> Document:
        """For programs, without what a release accepts."""
        found = encoded(self.hold)
        results = [{k: v for k, v in each.items() if k != "accepts"} for each in found["results"]]
        said = {"what": self.what, "computed_by": self.computed_by}
        return {**found, **said, "results": results, "rows": self.rows.document()}


def held_versions(layout: Layout, declared: Pipeline) -> Iterator[HeldVersion]:
    """Raises HeadgateError if a document or a table is damaged."""
    for hold in documents.holds(layout, declared):
        yield held_version(layout, declared, hold)


def held_version(layout: Layout, declared: Pipeline, hold: Hold) -> HeldVersion:
    """Raises as ``held_versions``."""
    what, by = hold.what, declaration_words(declared.file.name, is_own=True)
    operation = operation_of(layout, declared, hold) if hold.is_of_operation else None
    if operation is not None:
        what = f"{operation_named(operation.name).named(operation.document)} after batch {hold.n:,}"
        if "declaration" in operation.document:
            by = declaration_words(**operation.document["declaration"])
    return HeldVersion(hold, what, by, documents.shown_rows(layout, hold))


def reasons(hold: Hold, table: GoldTable) -> Iterator[tuple[RuleResult, str | None]]:
    """The rules that hold a version: what was observed, and what each demands; None if the suite
    no longer has the rule."""
    rules = {rule.id: rule for rule in table.suite.rules} if table.suite is not None else {}
    for result in hold.failed:
        rule = rules.get(result.rule)
        demands = "" if rule is None else rule.sql or asked(rule.expectation, rule.arguments)
        yield result, demands or None


def operation_of(layout: Layout, declared: Pipeline, hold: Hold) -> Operation | None:
    """The replay, backfill or drain that holds a table; None if it is not in force any more."""
    source = graph_of(declared).numbered_by(GOLD.path(hold.table)).name
    known = ControlTable.of(layout.storage, declared.name).refresh().operations_of(source)
    return next((each for each in known if each.number == hold.operation), None)


def rejectable(declared: Pipeline, layout: Layout, hold: Hold) -> Operation:
    """The replay or backfill that holds a table. Raises UsageError if something else holds it, and
    HeadgateError if it cannot be given up now."""
    table = f"gold.{hold.table}"
    if not hold.is_of_operation:
        what = f"{hold.title} is held by {hold.what}, which cannot be given up"
        if hold.log:
            raise UsageError(what, remedy=f"{_release(table, '--rebuild')}, or change the rule")
        raise UsageError(
            f"{hold.title} is held by {hold.what}: events are not given up",
            remedy=f"see the rows: {pipeline_command('gate show', table)}; then release them: "
            f"{_release(table)}; or change the rule in expectations/; or keep such events out of "
            "silver with a rule for its rows, and rebuild it: " + _rebuild(declared, hold),
        )
    if (above := declared.gold[hold.table].reads) is not None:
        raise UsageError(
            f"{hold.title} is held by {hold.what}, which gold.{above} has carried out: it reads "
            "that table, so it cannot be without",
            remedy=f"{_release(table)}, or change the rule",
        )
    found = operation_of(layout, declared, hold)
    if found is None or is_rejected(found.document, GOLD.path(hold.table)):
        raise HeadgateError(
            f"{hold.title}: this operation is given up already",
            remedy=f"see what holds the table: {pipeline_command('gate status')}",
        )
    if found.name == "drain":
        raise UsageError(
            f"{hold.title} is held by a drain, which cannot be given up: its windows are closed",
            remedy=f"{_release(table)}, or change the rule",
        )
    load = loads.find_load(layout, declared.name, str(found.document.get("load")))
    if load is not None and load.wish in ("open", "paused"):
        raise HeadgateError(
            f"{hold.title} is held by the load {load.id}, which would fold these rows again",
            remedy=f"cancel it first: {pipeline_command('load', '--cancel')}",
        )
    rebuild = begun_rebuild(ControlTable.of(layout.storage, declared.name).refresh())
    if rebuild is not None and GOLD.path(hold.table) in rebuild.tables:
        raise HeadgateError(
            f"{hold.title} is being rebuilt, and the rebuild carries the operation out, too",
            remedy=f"wait until the rebuild is published: {pipeline_command('status')}",
        )
    return found


def only_rejectable(
    declared: Pipeline, layout: Layout, held: Iterable[HeldVersion]
) -> list[HeldVersion]:
    """Those that can be given up. Raises as ``rejectable`` for the first one if none can."""
    found, why = list[HeldVersion](), None
    for each in held:
        try:
            rejectable(declared, layout, each.hold)
            found.append(each)
        except HeadgateError as error:
            why = why or error
    if why is not None and not found:
        raise why
    return found


def rejection(hold: Hold, operation: Operation, by: str, reason: str, now: datetime) -> Rejection:
    """The request to give an operation up."""
    version = operation.number, hold.generation
    return Rejection(new_id(now), hold.table, *version, by, reason, now)


def _release(table: str, *options: str) -> str:
    return pipeline_command("gate release", table, *options, "--reason", "WHY")


def _rebuild(declared: Pipeline, hold: Hold) -> str:
    """The commands that rebuild the silver tables of a gold table, one after the other."""
    inputs = declared.gold[hold.table].inputs
    each = (pipeline_command("run", "--full-refresh", f"silver.{name}") for name in inputs)
    return ", then ".join(each)
