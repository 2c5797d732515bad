"""The stage of a publication of gate events to a mirror.

The mirror has the name of its last event, and continues from there. The position in the lake is a
copy of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa

from headgate.commands import pipeline_command
from headgate.declaration.kinds import name_of
from headgate.failpoints import failpoint
from headgate.flow.gates.events import GateEvent, GateEvents
from headgate.flow.publish.gate_events import EVENTS, number_of, rows_of
from headgate.flow.publish.identity import log_id
from headgate.flow.publish.mirror_calls import Call, CallingStage
from headgate.flow.publish.position import MOST_UNSENT, Position
from headgate.flow.publish.sinks.writers import KEY, Difference, Mirror, SinkRefusalError, Version
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout


class GateMirrorStage(CallingStage):
    """Adds the events that a mirror lacks."""

    def __init__(self, storage: Storage, position: Position, mirror: Mirror) -> None:
        super().__init__(position, mirror)
        self._events = GateEvents(Layout(storage), name_of(self.source.name))

    def _next(self, now: datetime, held: Version | None) -> Call | None:
        self.source.refresh()
        if held is not None and held.table != self._id:
            raise SinkRefusalError(
                f"it has events of another copy of {self.source.name}. To replace them by those of "
                f"this table: {pipeline_command('publication reset', self.publication.name)}"
            )
        last, version = "" if held is None else held.files, self.source.version
        if new := self._events.after(last):
            return partial(self._add, new, held, self._id)
        if self._position.event != last or version - self._position.version >= MOST_UNSENT:
            self._position.move(version, now, event=last)
        return None

    def _moved(self, now: datetime, held: Version) -> None:
        failpoint("publish.sent")
        self._position.move(self.source.version, now, event=held.files)
        failpoint("publish.committed")

    @cached_property
    def _id(self) -> str:
        """Identifies the gate. Read once: it never changes."""
        return f"gates of {log_id(self.source)}"

    def _add(self, new: Sequence[GateEvent], held: Version | None, id_: str) -> Version:
        """Add events; none is ever removed."""
        last = new[-1]
        upto = Version(id_, number_of(last.name), last.name, last.n)
        gone = pa.table({KEY: pa.array([], pa.binary())})
        self._mirror.apply(Difference([_keyed(new)], gone, EVENTS, ("id",), held, upto))
        return upto


def _keyed(found: Sequence[GateEvent]) -> pa.Table:
    """Events with ``KEY``, and their rules as JSON. Of equal ids, the last event counts."""
    once = tuple({event.id: event for event in found}.values())
    hashes = [hashlib.sha256(event.id.encode()).digest() for event in once]
    rules = pa.array([json.dumps(list(event.rules)) for event in once])
    rows = rows_of(once).set_column(EVENTS.get_field_index("rules"), "rules", rules)
    return rows.add_column(0, KEY, pa.array(hashes, pa.binary()))
