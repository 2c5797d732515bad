"""The gold versions that rules hold back, as a person decides about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.declaration.contracts.operation import operation_named
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.files import declaration_words
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.suites.plan import asked
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.lake.storage.documents import Document, encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.row_changes import RowChanges
from headgate.lake.tables.snapshot import head_table


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
    """The replay, backfill or drain that holds a table; None if bronze no longer has it."""
    known = BronzePayload.of(head_table(layout, declared).refresh()).operations
    return next((each for each in known if each.number == hold.operation), None)
