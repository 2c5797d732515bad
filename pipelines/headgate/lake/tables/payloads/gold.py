"""The payload of gold tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headgate.lake.tables.state import FINAL_ROWS, OPEN_ROWS, Payload

Span = Sequence[int]
"""The first and the last of some times, in microseconds since 1970 UTC."""
GONE = "gone"
"""The count of a batch: open rows whose result has another begin after it."""


@dataclass(frozen=True)
class GoldPayload(Payload):
    """``watermark`` is that of the source at the table's batch id, for the time by which the table
    has windows. ``closed_through`` is the window
    end up to which an operation has closed the table. Both are microseconds since 1970 UTC, or None
    if they are not known. ``drains`` has the window end up to which each drain has closed the
    table, by the operation's number. ``gate`` is the result of the last validation of the table's
    suite: ``suite`` is the digest of the suite, ``at`` the time, ``n`` and ``operation`` are the
    batch id and the operation of the validated version, ``broken`` are the rules that it broke,
    ``released`` says who has released the version, when and why, ``earlier`` who has released what
    else breaks rules in it. None if there was no validation. ``open`` is the number of open rows,
    None if it is not known. ``backfills`` has the first and the last begin of the rows that each
    published backfill has changed in the table, by the operation's number. ``left_out`` has, by the
    same number, the results whose late pairs the last replay left waiting because of that backfill:
    the number of the replay (``operation``), their first begin (``first``) and last end (``end``).
    If the rows decide when a result ends, ``longest`` is the length of the longest one so far in
    microseconds: none that begins earlier reaches into a time. ``inputs`` are the batch ids of the
    sources up to which a table has read that reads several."""

    kind: ClassVar[str] = "gold"

    watermark: int | None = None
    closed_through: int | None = None
    gate: Mapping[str, Any] | None = None
    drains: Mapping[str, int] = field(default_factory=dict)
    open: int | None = None
    backfills: Mapping[str, Span] = field(default_factory=dict)
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    longest: int = 0
    inputs: Mapping[str, int] = field(default_factory=dict)

    def rows(self, counted: int) -> Mapping[str, int]:
        opened = {} if self.open is None else {OPEN_ROWS: self.open}
        return {FINAL_ROWS: counted, **opened}

    def is_validated(self, n: int, operation: int) -> bool:
        """Whether the version at a batch id and an operation was validated itself. Later versions
        repeat its result."""
        if self.gate is None:
            return False
        return (self.gate["n"], self.gate["operation"]) == (n, operation)

    def corrected_by(self, begin: int, earlier: int = 0) -> str | None:
        """The number of the last published backfill that has changed rows around a begin. If rows
        decide where results begin, a late pair may belong to one that begins up to ``earlier``
        microseconds later, or by the length of a result earlier."""
        found = (
            number
            for number, (first, last) in self.backfills.items()
            if first - earlier <= begin <= last + self.longest
        )
        return max(found, key=int, default=None)

    def corrected(self, results: Iterable[Span], earlier: int = 0) -> dict[str, tuple[int, int]]:
        """Some results, by the number of the last backfill that has changed rows around them: their
        first begin and last end. A result is its begin and its end. ``earlier`` as above."""
        spans: dict[str, tuple[int, int]] = {}
        for begin, end in results:
            if (number := self.corrected_by(begin, earlier)) is not None:
                first, last = spans.get(number, (begin, end))
                spans[number] = min(first, begin), max(last, end)
        return spans

    def final_through(self, lateness: int) -> int | None:
        """The window end up to which results are final; None if none is. ``lateness`` is the
        allowed lateness in microseconds."""
        threshold = None if self.watermark is None else self.watermark - lateness
        ends = [end for end in (threshold, self.closed_through) if end is not None]
        return max(ends, default=None)


MEMBER = GoldPayload()
