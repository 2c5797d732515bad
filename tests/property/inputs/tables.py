"""A gold table with several inputs, which reads their logs in steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tests.property.inputs.definitions import Definition, Results
from tests.property.inputs.logs import Decision, Logs, Position, Row


class Rule(Enum):
    STEP_ENDS = "a step ends at each decision"
    BELOW_OUTPUT = "a row below the output watermark at the begin of its step is late"
    BEHIND_CLOCK = "a row whose watermark at arrival is past its time and the lateness is late"
    NEVER_FALLS = "the output watermark never falls"
    WAITS = "the output watermark waits for each source that is not idle"
    REPLAYED_LATER = "later steps read the rows, too, that a replay has included"


@dataclass(frozen=True)
class Table:
    """``floor`` is the output watermark: what is decided below it is computed. ``late`` are the
    late rows that wait, ``replayed`` those that a replay has included."""

    definition: Definition
    lateness: int
    sources: tuple[str, ...]
    without: frozenset[Rule] = frozenset()
    position: Position = field(default_factory=dict)
    decisions: int = 0
    floor: int | None = None
    read: tuple[Row, ...] = ()
    late: frozenset[str] = frozenset()
    replayed: frozenset[str] = frozenset()
    rows: Results = field(default_factory=dict)

    def stop(self, logs: Logs) -> Position:
        """Up to where one step may read."""
        if self.decisions < len(logs.decisions) and Rule.STEP_ENDS not in self.without:
            return logs.decisions[self.decisions].position
        return logs.position

    def is_at_decision(self, logs: Logs) -> bool:
        """Whether the last step has ended at a decision, or at the end of the history."""
        return self.position in (logs.position, *(each.position for each in logs.decisions))

    def step(self, logs: Logs, upto: Position) -> Table:
        """Read the batches up to a position, no further than ``stop``, and carry out the decisions
        there."""
        at = {s: max(upto.get(s, 0), self.position.get(s, 0)) for s in self.sources}
        table = self._read(logs, at) if at != self.position or not self.position else self
        while table.decisions < len(logs.decisions) and table._is_at(
            decision := logs.decisions[table.decisions]
        ):
            table = table._decided(logs, decision)
        return table

    def _is_at(self, decision: Decision) -> bool:
        return all(self.position.get(s, 0) >= decision.position.get(s, 0) for s in self.sources)

    def _read(self, logs: Logs, at: Position) -> Table:
        new = [r for s in self.sources for r in logs.rows(s, self.position.get(s, 0), at[s])]
        late = self.late | {row.id for row in new if self._is_late(row)}
        output = self._output(logs, at)
        return self._with(position=at, read=(*self.read, *new), late=late)._raised(output)

    def _is_late(self, row: Row) -> bool:
        behind = row.clock is not None and row.clock > row.time + self.lateness
        below = self.floor is not None and row.time < self.floor
        return (behind and Rule.BEHIND_CLOCK not in self.without) or (
            below and Rule.BELOW_OUTPUT not in self.without
        )

    def _output(self, logs: Logs, at: Position) -> int | None:
        idle = logs.decisions[self.decisions - 1].idle if self.decisions else frozenset()
        waited_for = [s for s in self.sources if s not in idle]
        known = [logs.sources[s].watermarks[at[s]] for s in waited_for]
        clocks = [clock for clock in known if clock is not None]
        waits = len(clocks) < len(known) and Rule.WAITS not in self.without
        return min(clocks) - self.lateness if clocks and not waits else None

    def _decided(self, logs: Logs, decision: Decision) -> Table:
        table = self._with(decisions=self.decisions + 1)
        if decision.replays:
            table = table._with(late=frozenset(), replayed=self.replayed | self.late)
            table = table._with(rows=table._between(None, table.floor))
        if decision.drains:
            decided = [time + 1 for time, _ in self.definition.results(table.included).values()]
            table = table._raised(max(decided, default=None))
        # A source that has become idle holds the output watermark no longer.
        return table._raised(table._output(logs, table.position))

    def _raised(self, output: int | None) -> Table:
        """The table with all rows below another output watermark."""
        falls = Rule.NEVER_FALLS in self.without and output is not None
        known = (output,) if falls else (self.floor, output)
        floor = max((each for each in known if each is not None), default=None)
        return self._with(floor=floor, rows={**self.rows, **self._between(self.floor, floor)})

    @property
    def included(self) -> tuple[Row, ...]:
        return tuple(row for row in self.read if row.id not in self.late)

    def _between(self, floor: int | None, upto: int | None) -> Results:
        if upto is None:
            return {}
        rows = self.included
        if Rule.REPLAYED_LATER in self.without and floor is not None:
            rows = tuple(row for row in rows if row.id not in self.replayed)
        found = self.definition.results(rows)
        return {
            id_: each
            for id_, each in found.items()
            if each[0] < upto and (floor is None or each[0] >= floor)
        }

    def _with(self, **changed: object) -> Table:
        return Table(**{**vars(self), **changed})

    @property
    def content(self) -> tuple[object, ...]:
        """What readers see of the table: its rows, those that are late, and its output
        watermark."""
        return dict(self.rows), self.late, self.floor
