"""The document of each validation of a gold table, for reports and the events of a gate.

It is written before the version becomes visible, so a crash may leave a document for a version that
never did. Only the table's log decides. A document that is missing or damaged is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.model import Suite
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import Release
from headgate.lake.storage.documents import Document, encoded, ids_in, read_value, write_document
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.row_changes import NO_ROWS, RowChanges
from headgate.lake.tables.state import commit_time

KEPT = 500
"""The number of validations of a table that are kept."""

_REBUILT = ".rebuild"

Outcome = Literal["met", "broken", "held", "released"]


@dataclass(frozen=True)
class Validation:
    """The results of ``suite`` for the version of a table at batch id ``n``, which was to become
    ``version`` of its log. ``released`` is the release that let it become visible although it
    breaks a rule that holds. For the rebuild of the table, ``log`` is the folder of the rebuild's
    log. ``operation`` and ``generation`` are those of the version, as in ``Hold``. ``rows`` are the
    first rows that break a rule that holds it."""

    table: str
    n: int
    version: int
    at: datetime
    suite: Suite
    results: tuple[RuleResult, ...]
    released: Release | None = None
    log: str = ""
    operation: int = 0
    generation: int = 0
    rows: RowChanges = NO_ROWS

    @property
    def broken(self) -> tuple[RuleResult, ...]:
        return tuple(result for result in self.results if not result.met)

    @property
    def outcome(self) -> Outcome:
        """``broken``: it only breaks rules that warn."""
        if any(result.holds for result in self.results):
            return "held" if self.released is None else "released"
        return "broken" if self.broken else "met"

    def document(self) -> Document:
        return encoded(self) | {"suite": self.suite.encode(), "outcome": self.outcome}


class ValidationLog:
    """Writes the documents of one gold table."""

    def __init__(self, layout: Layout, table: str) -> None:
        self._layout, self._table = layout, table

    def record(self, validation: Validation) -> None:
        """Write a document, and remove the oldest ones. Of a table that stays held, only the first
        and the last document are kept: a long hold must not remove the document with which it
        began, which is its event. If this fails, only the document is lost: no commit may depend on
        it."""
        with suppress(OSError):
            storage, names = self._layout.storage, _names(self._layout, self._table)
            # Sorts after all others, even if the clock was set back: publications of events
            # continue from the last name.
            number = max([commit_time(validation.at), *(_number(name) + 1 for name in names[-1:])])
            ending = _REBUILT if validation.log else ""
            name = f"{number:020d}-{validation.version:09d}{ending}"
            write_document(storage, _path(self._table, name), validation.document())
            for old in (*names[: 1 - KEPT], *self._held_again(validation, names)):
                storage.remove(_path(self._table, old))

    def _held_again(self, validation: Validation, names: Sequence[str]) -> Sequence[str]:
        """The document before ``validation``, if the table was held then, before that, and now."""
        of_log = [name for name in names if name.endswith(_REBUILT) == bool(validation.log)]
        before = of_log[-2:]
        is_held = validation.outcome == "held" and len(before) == 2
        return before[1:] if is_held and all(map(self._is_held, before)) else ()

    def _is_held(self, name: str) -> bool:
        with suppress(HeadgateError):
            found = read_value(self._layout.storage, _path(self._table, name), Validation)
            return found is not None and found.outcome == "held"
        return False


def validations(layout: Layout, table: str) -> tuple[Validation, ...]:
    """The newest validations of a gold table and of its rebuilds, the oldest first."""
    return tuple(each for _, each in named_validations(layout, table))


def named_validations(
    layout: Layout, table: str, after: str = ""
) -> Iterator[tuple[str, Validation]]:
    """As ``validations``, each with the name of its document, by which they are sorted. Documents
    up to the name ``after`` are not read."""
    for name in _names(layout, table)[-KEPT:]:
        if name <= after:
            continue
        with suppress(HeadgateError):
            found = read_value(layout.storage, _path(table, name), Validation)
            if found is not None:
                yield name, found


def _number(name: str) -> int:
    """The number that a document's name begins with; 0 if a foreign file has none."""
    digits = name.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _names(layout: Layout, table: str) -> list[str]:
    """The names of the documents of a table, the oldest first."""
    return ids_in(layout.storage, f"{CONTROL}/validations/{table}")


def _path(table: str, name: str) -> str:
    return f"{CONTROL}/validations/{table}/{name}.json"
