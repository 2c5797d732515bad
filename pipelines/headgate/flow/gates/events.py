"""The events of a gate: a version was held, was released, or has passed after it was held.

Events are read from the documents of validations. A held version is validated repeatedly; only the
first of these validations is an event. An event that a crash repeats has the same id.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from headgate.flow.gates.validations import KEPT, Validation, named_validations
from headgate.lake.storage.layout import Layout

What = Literal["held", "released", "passed"]


@dataclass(frozen=True)
class GateEvent:
    """``name`` orders the events of a table. ``n`` is the batch id of the version, ``operation``,
    ``generation`` and ``log`` are as in ``Validation``. ``rules`` are those that hold it, with the
    observed values. ``by`` and ``reason`` belong to a release."""

    name: str
    table: str
    event: What
    n: int
    at: datetime
    rules: tuple[str, ...] = ()
    by: str | None = None
    reason: str | None = None
    operation: int = 0
    generation: int = 0
    log: str = ""

    @property
    def is_rebuild(self) -> bool:
        return bool(self.log)

    @property
    def id(self) -> str:
        """The same id each time that the event is read. It distinguishes versions at one batch id:
        several replays or rebuilds, and the batches after a restore."""
        version = f"{self.n} {self.operation} {self.generation} {self.log}"
        said = f"gate.{self.table} {self.event} {version} {self.reason}"
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


class GateEvents:
    """The events of a gold table's gate, as far back as validations are kept. Each document is read
    once, because a driver looks for new events about once a second."""

    def __init__(self, layout: Layout, table: str) -> None:
        self._layout, self._table = layout, table
        self._read = ""
        self._held = set[str]()
        self._found: deque[GateEvent] = deque(maxlen=KEPT)

    def after(self, name: str) -> tuple[GateEvent, ...]:
        """The events after the one with this name, oldest first."""
        for document, each in named_validations(self._layout, self._table, self._read):
            self._read = document
            if (event := self._event(each)) is not None:
                self._found.append(_gate_event(document, event, each))
        return tuple(event for event in self._found if event.name > name)

    def _event(self, each: Validation) -> What | None:
        """The event that a validation is; None if it is none."""
        was_held = each.log in self._held
        if each.outcome == "held":
            self._held.add(each.log)
            return None if was_held else "held"
        self._held.discard(each.log)
        if each.outcome == "released":
            return "released"
        return "passed" if was_held else None


def _gate_event(name: str, event: What, each: Validation) -> GateEvent:
    given = each.released
    return GateEvent(
        name=name,
        table=each.table,
        event=event,
        n=each.n,
        at=each.at,
        rules=tuple(str(result) for result in each.results if result.holds),
        by=given.by if given else None,
        reason=given.reason if given else None,
        operation=each.operation,
        generation=each.generation,
        log=each.log,
    )
