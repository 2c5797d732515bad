"""The stage of a publication of gate events to a log: versions held, released, passed.

The events come from documents, not from a table. The position stores the name of the last event
that was sent. It also follows the log of the gold table, although no rows of the table are sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.declaration.kinds import name_of
from headgate.failpoints import failpoint
from headgate.flow.gates.events import GateEvent, GateEvents
from headgate.flow.publish.contract import Stage
from headgate.flow.publish.position import MOST_UNSENT, Position
from headgate.flow.publish.sinks.writers import Outgoing, Writer
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


class GateEventStage(Stage):
    """Sends events to a log."""

    def __init__(
        self, spark: SparkSession, storage: Storage, position: Position, writer: Writer
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
        ``Stage.catch_up``."""
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
        rows = self._spark.createDataFrame(rows_of(found))
        messages = self._spark.createDataFrame(_messages(found))
        upto = number_of(found[-1].name)
        return Outgoing(rows, messages, number_of(sent), upto, len(found))


def number_of(name: str) -> int:
    """The first part of an event's name: microseconds since 1970; 0 for an empty name."""
    return int(name.partition("-")[0] or 0)


def rows_of(found: Sequence[GateEvent]) -> pa.Table:
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
