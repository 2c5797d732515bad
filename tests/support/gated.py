"""A gated gold table whose versions are known. The level of each event is another power of two, so
the totals of a version show which events it has folded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold, Release
from tests.support.engine import Engine
from tests.support.polling import Values
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject

TABLES = """
silver:
  clean: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    measures:
      events: count(*)
      total: sum(level)
      faults: sum(case site when 'bad' then 1 when 'corrected' then -1 else 0 end)
    allowed_lateness: 1 hour
    expectations: per_minute
"""
RULES = """
expectations:
  - {id: sane, expect: faults = 0}
  - {id: rows, expect: expect_table_row_count_to_be_between, min_value: 1}
"""
TABLE = "per_minute"
COLUMN = "total"
LATE = timedelta(days=1)


@dataclass(frozen=True)
class Event:
    number: int
    minute: int
    site: str
    is_late: bool = False


class GatedProject(SuiteProject):
    """A minute with a ``bad`` event breaks the rule until it also has a ``corrected`` one."""

    def __init__(self, folder: Path, spark: SparkSession, tables: str = TABLES) -> None:
        super().__init__(folder, spark, tables, TABLE)
        self.write_rules(RULES)
        self.table = self.root / "readings/gold" / TABLE
        self.events: list[Event] = []

    def deliver(self, site: str, minute: int | None = None, *, is_late: bool = False) -> None:
        """Deliver one more event in its own file, by default in its own minute."""
        number = len(self.events)
        event = Event(number, number if minute is None else minute, site, is_late)
        self.events.append(event)
        at = NOON + timedelta(minutes=event.minute) - (LATE if is_late else timedelta())
        self.land([{"id": f"e{number}", "site": site, "level": 1 << number, "at": at.isoformat()}])

    def faulty(self, events: int | None = None) -> list[int]:
        """The minutes that break the rule when the first ``events`` events (None: all) are
        folded."""
        faults: Counter[int] = Counter()
        for event in self.events[:events]:
            faults[event.minute] += {"bad": 1, "corrected": -1}.get(event.site, 0)
        return [minute for minute, count in faults.items() if count]

    def version(self, events: int) -> Values:
        """The sorted totals of the version that has folded the first ``events`` events."""
        totals: Counter[int] = Counter()
        for event in self.events[:events]:
            if not event.is_late:
                totals[event.minute] += 1 << event.number
        return tuple(sorted(totals.values()))

    def versions(self) -> list[Values]:
        """The totals of each version that readers could have seen, the oldest first. A version
        that changed no rows is left out."""
        handle, seen = DeltaTable(str(self.table)), dict[Values, None]()
        for version in range(handle.version() + 1):
            handle.load_as_version(version)
            rows = pa.table(handle.to_pyarrow_table(columns=[COLUMN]))
            seen[tuple(sorted(rows.column(COLUMN).to_pylist()))] = None
        return list(seen)

    def catch_up(self, engine: Engine) -> Engine:
        """Process everything; a held table is validated again at once."""
        if self.hold(engine) is not None:
            documents.ask_retry(engine.layout, TABLE, engine.clock())
        return engine.run_all()

    def hold(self, engine: Engine) -> Hold | None:
        return documents.hold_reason(engine.layout, TABLE)

    def release(self, engine: Engine) -> Release:
        """Release the held version; the next catch-up commits it."""
        held = self.hold(engine)
        assert held is not None
        given = held.release("anna@host", "a real outlier", engine.clock())
        documents.release(engine.layout, TABLE, given)
        return given
