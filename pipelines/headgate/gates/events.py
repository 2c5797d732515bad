"""The events of a gate: a version was held, was released, or has passed after it was held.

Events are read from the documents of validations. A held version is validated repeatedly; only the
first of these validations is an event. An event that a crash repeats has the same id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from headgate.gates.validations import Validation, named_validations
from headgate.storage.layout import Layout

What = Literal["held", "released", "passed"]


@dataclass(frozen=True)
class GateEvent:
    """``name`` orders the events of a table. ``n`` is the batch id of the version. ``rules`` are
    those that hold it, with the observed values. ``by`` and ``reason`` belong to a release."""

    name: str
    table: str
    event: What
    n: int
    is_rebuild: bool
    at: datetime
    rules: tuple[str, ...] = ()
    by: str | None = None
    reason: str | None = None

    @property
    def id(self) -> str:
        """The same id each time that the event is read."""
        said = f"gate.{self.table} {self.event} {self.n} {self.is_rebuild} {self.reason}"
        return hashlib.sha256(said.encode()).hexdigest()

    def as_row(self) -> dict[str, Any]:
        return {
            "table": f"gold.{self.table}",
            "event": self.event,
            "batch": self.n,
            "rebuild": self.is_rebuild,
            "at": self.at,
            "rules": list(self.rules),
            "by": self.by,
            "reason": self.reason,
        }


def events(layout: Layout, table: str, after: str) -> tuple[GateEvent, ...]:
    """The events of a gold table's gate after the event named ``after``, oldest first, as far back
    as validations are kept."""
    found = _events(named_validations(layout, table))
    return tuple(event for event in found if event.name > after)


def _events(found: Iterator[tuple[str, Validation]]) -> Iterator[GateEvent]:
    held = set[str]()
    for name, each in found:
        event: What = "passed"
        if each.outcome == "held":
            if each.log in held:
                continue
            held.add(each.log)
            event = "held"
        elif each.outcome == "released":
            event = "released"
        elif each.log not in held:
            continue
        if event != "held":
            held.discard(each.log)
        given = each.released
        yield GateEvent(
            name=name,
            table=each.table,
            event=event,
            n=each.n,
            is_rebuild=bool(each.log),
            at=each.at,
            rules=tuple(str(result) for result in each.results if result.holds),
            by=given.by if given else None,
            reason=given.reason if given else None,
        )
