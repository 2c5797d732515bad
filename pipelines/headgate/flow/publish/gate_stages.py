"""The stages of publications of gate events: versions held, released, passed.

The events come from documents, not from a table. The position stores the name of the last event
that was sent. It also follows the log of the gold table, although no rows of the table are sent. A
mirror has the name of its last event, and continues from there; the position in the lake is a copy
of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.commands import pipeline_command
from headgate.declaration.kinds import name_of
from headgate.failpoints import failpoint
from headgate.flow.gates.events import GateEvent, GateEvents
from headgate.flow.publish.mirror_calls import Call, CallingStage
from headgate.flow.publish.publication import (
    MOST_UNSENT,
    PublicationStage,
    PublishedPosition,
    log_id,
)
from headgate.flow.publish.sinks.writers import (
    KEY,
    Mirror,
    MirrorVersion,
    Outgoing,
    SinkRefusalError,
    VersionDifference,
    Writer,
)
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout

EVENTS = pa.schema(
    [
        ("id", pa.string()),
        ("table", pa.string()),
        ("event", pa.string()),
        ("batch", pa.int64()),
        ("rebuild", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("rules", pa.list_(pa.string())),
        ("by", pa.string()),
        ("reason", pa.string()),
    ]
)
"""The columns of an event."""
_MESSAGES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class GateEventStage(PublicationStage):
    """Sends events to a log."""

    def __init__(
        self, spark: SparkSession, storage: Storage, position: PublishedPosition, writer: Writer
    ) -> None:
        super().__init__(position, writer)
        self._spark, self._writer = spark, writer
        self._events = GateEvents(Layout(storage), name_of(self.source.name))
        # What a sink still sends in the background, and the name of its last event.
        self._begun: tuple[Outgoing, str] | None = None

    def close(self) -> None:
        self._writer.close()

    def catch_up(self, now: datetime) -> bool:
        """Send the events after the position. Returns whether all were sent. Raises as
        ``PublicationStage.catch_up``."""
        self.source.refresh()
        version, sent = self.source.version, self._position.event
        found = self._events.after(sent)
        if self._begun is None and found:
            self._begun = self._outgoing(found, sent), found[-1].name
        newest = sent
        if self._begun is not None:
            outgoing, newest = self._begun
            if not self._writer.send(outgoing):
                return False
            self._begun = None
        if newest != sent or version - self._position.version >= MOST_UNSENT:
            failpoint("publish.sent")
            self._position.move(version, now, event=newest)
            failpoint("publish.committed")
        return not found or newest == found[-1].name  # new ones may exist since the call began

    def _outgoing(self, found: Sequence[GateEvent], sent: str) -> Outgoing:
        rows = self._spark.createDataFrame(event_rows(found))
        messages = self._spark.createDataFrame(_messages(found))
        upto = event_number(found[-1].name)
        return Outgoing(rows, messages, event_number(sent), upto, len(found))


def event_number(name: str) -> int:
    """The first part of an event's name: microseconds since 1970; 0 for an empty name."""
    return int(name.partition("-")[0] or 0)


def event_rows(found: Sequence[GateEvent]) -> pa.Table:
    """Events as rows of ``EVENTS``."""
    return pa.Table.from_pylist([{"id": e.id, **e.as_row()} for e in found], schema=EVENTS)


def _messages(found: Sequence[GateEvent]) -> pa.Table:
    """The events of a table have one key, so that they arrive in order."""
    rows = []
    for event in found:
        row = event.as_row()
        headers = {
            "headgate-id": event.id,
            "headgate-table": f"gate.{event.table}",
            "headgate-event": event.event,
        }
        value = json.dumps({**row, "at": event.at.isoformat(timespec="microseconds")})
        pairs = [{"key": name, "value": text.encode()} for name, text in headers.items()]
        key = json.dumps({"table": row["table"]})
        rows.append({"key": key.encode(), "value": value.encode(), "headers": pairs})
    return pa.Table.from_pylist(rows, schema=_MESSAGES)


class GateMirrorStage(CallingStage):
    """Adds the events that a mirror lacks."""

    def __init__(self, storage: Storage, position: PublishedPosition, mirror: Mirror) -> None:
        super().__init__(position, mirror)
        self._events = GateEvents(Layout(storage), name_of(self.source.name))

    def _next(self, now: datetime, held: MirrorVersion | None) -> Call | None:
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

    def _moved(self, now: datetime, held: MirrorVersion) -> None:
        failpoint("publish.sent")
        self._position.move(self.source.version, now, event=held.files)
        failpoint("publish.committed")

    @cached_property
    def _id(self) -> str:
        """Identifies the gate. Read once: it never changes."""
        return f"gates of {log_id(self.source)}"

    def _add(self, new: Sequence[GateEvent], held: MirrorVersion | None, id_: str) -> MirrorVersion:
        """Add events; none is ever removed."""
        last = new[-1]
        upto = MirrorVersion(id_, event_number(last.name), last.name, last.n)
        gone = pa.table({KEY: pa.array([], pa.binary())})
        self._mirror.apply(VersionDifference([_keyed(new)], gone, EVENTS, ("id",), held, upto))
        return upto


def _keyed(found: Sequence[GateEvent]) -> pa.Table:
    """Events with ``KEY``, and their rules as JSON. Of equal ids, the last event counts."""
    once = tuple({event.id: event for event in found}.values())
    hashes = [hashlib.sha256(event.id.encode()).digest() for event in once]
    rules = pa.array([json.dumps(list(event.rules)) for event in once])
    rows = event_rows(once).set_column(EVENTS.get_field_index("rules"), "rules", rules)
    return rows.add_column(0, KEY, pa.array(hashes, pa.binary()))
