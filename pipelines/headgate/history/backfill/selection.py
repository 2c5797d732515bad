"""Which part of bronze a backfill reads, and in which steps: plain functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.declaration.contracts.operation import is_rejected, operation_named
from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable
from headgate.declaration.names import TimeKind
from headgate.history.backfill.errors import NotBackfilledError
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import Operation
from headgate.lake.tables.payloads.gold import GoldPayload

LATEST = 1 << 60
EVERYTHING = (-LATEST, LATEST)
BACKFILL = "backfill"
COMPUTABLE = ("drain", "late_replay", BACKFILL)

TimeSpan = tuple[int, int]
"""The first and the last microsecond of a range of time."""


@dataclass(frozen=True)
class EventTimeRange:
    """Event times ``[begin, end)``, in microseconds since 1970 UTC. A result belongs to it if it
    lies completely inside."""

    begin: int
    end: int = LATEST

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """The range as a span; none if it is empty."""
        return ((self.begin, self.end - 1),) if self.begin < self.end else ()


def earlier(spans: Iterable[TimeSpan], micros: int) -> tuple[TimeSpan, ...]:
    """Spans that begin earlier, and with the moment after their last one: rows that decide where
    results begin and end."""
    return tuple((first - micros, last + bool(micros)) for first, last in spans)


def event_times_read(table: GoldTable, spans: Sequence[TimeSpan]) -> tuple[TimeSpan, ...]:
    """The event times of the rows that decide what the results of a table in some spans are."""
    if not spans or table.time != "event":  # files have bounds of event times alone
        return (EVERYTHING,) if spans else ()
    return earlier(spans, operator_of(table).reach(table.operator))


@dataclass(frozen=True)
class BronzeStep:
    """The files of bronze with rows of the batches ``(after, upto]``."""

    after: int
    upto: int
    files: tuple[DataFile, ...]


def bronze_steps(files: Iterable[DataFile], ends: Iterable[int]) -> tuple[BronzeStep, ...]:
    """The files up to the last of the batch ids ``ends``, in steps that do not cross any of them.
    Steps without files are left out. Raises NotBackfilledError if a file has rows on both sides of
    one."""
    found, after, left = [], 0, tuple(files)
    for upto in sorted(set(ends)):
        if any(file.is_across(upto) for file in left):
            raise NotBackfilledError(
                f"files were merged across batch {upto:,} while the tables were read",
                remedy="type the command again",
            )
        held = tuple(file for file in left if file.n <= upto)
        left = tuple(file for file in left if file.n > upto)
        if held:
            found.append(BronzeStep(after, upto, held))
            after = upto
    return tuple(found)


def require_computable(operations: Iterable[Operation], graph: Graph, path: str) -> None:
    """Raises NotBackfilledError if a table has carried out an operation that is not in
    ``COMPUTABLE``."""
    for each in operations:
        if each.name in COMPUTABLE:
            continue
        if path in operation_named(each.name).touches(graph, each.document):
            raise NotBackfilledError(
                f"{path} has carried out the operation {each.name}, which cannot be computed again",
                remedy="use another tool, for a range of event time that the operation has not "
                "touched",
            )


def drains_of(held: GoldPayload, operations: Sequence[Operation]) -> tuple[tuple[int, int], ...]:
    """The batch id of each drain of a table, and the window end up to which it made windows
    final."""
    batches = {each.number: each.n for each in operations if each.name == "drain"}
    ends = sorted((int(number), end) for number, end in held.drains.items())
    return tuple((batches[number], end) for number, end in ends)


def final_end_at(
    operation: Operation, held: GoldPayload, lateness: int, time: TimeKind = "event"
) -> int | None:
    """The end up to which the results of a table with windows of a ``time`` were final when it
    carried out an operation."""
    before = (end for number, end in held.drains.items() if int(number) < operation.number)
    then = GoldPayload(operation.watermarks.of(time), max(before, default=None))
    return then.final_through(lateness)


def backfills_into(
    wanted: EventTimeRange, table: str, operations: Iterable[Operation]
) -> tuple[str, ...]:
    """The ids of the backfills among some operations that were published into a range of a
    table."""
    found = []
    for each in operations:
        if each.name != BACKFILL or is_rejected(each.document, GOLD.path(table)):
            continue
        if (patch := each.document["tables"].get(table)) is None:
            continue
        first, last = patch["span"]
        if any(first <= end and last >= begin for begin, end in wanted.spans):
            found.append(str(each.document["backfill"]))
    return tuple(found)


def first_begin(table: GoldTable, begin: int, end: int) -> int | None:
    """The begin of the first window that ends after ``begin``; None if it ends after ``end``.
    Returns ``begin`` if the operator does not know its windows before their rows. Times are
    microseconds since 1970 UTC: a window may begin before the first time that Python knows."""
    if (window := operator_of(table).first_after(table.operator, begin)) is None:
        return begin
    first, its_end = window
    return first if its_end <= end else None
