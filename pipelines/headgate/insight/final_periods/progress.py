"""What was reported of the final rows of a gold table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headgate.insight.final_periods.periods import Period

RENEWED_AFTER = timedelta(hours=6)
"""A position that is this much older than the table is renewed, although no row has changed: vacuum
removes old versions after a day, and a position is compared with the version that it names."""
MOST = 50
"""The most events of one report. Airflow's API takes about 10 ms for each, and the client sends a
report again that has no answer within 5 s."""


@dataclass(frozen=True)
class TableVersion:
    """A version of a gold table: its number, ``generation`` and last ``operation``, the ``at`` of
    its last commit in microseconds since 1970 UTC, and the ISO time up to which it is final."""

    version: int
    generation: int
    operation: int
    at: int
    final_up_to: str

    @staticmethod
    def decode(content: Mapping[str, Any]) -> TableVersion:
        """Raises TypeError if ``content`` is not a result of ``encode``."""
        return TableVersion(**content)

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.final_up_to)

    def is_ahead_of(self, later: TableVersion, period: Period) -> bool:
        """Whether more periods were final than at a ``later`` position: the table was restored, and
        is behind; or another one has replaced it."""
        return period.whole(later.time) < period.whole(self.time)

    def may_differ(self, later: TableVersion, period: Period) -> bool:
        """Whether a ``later`` position may have periods that are due, or this one has to be
        renewed. While a restored table is behind, it has none: it is compared when it is final
        again up to the same time."""
        if self.is_ahead_of(later, period):
            return False
        return (
            period.whole(later.time) > period.whole(self.time)
            or (self.generation, self.operation) != (later.generation, later.operation)
            or later.version < self.version
            or later.at - self.at >= RENEWED_AFTER // timedelta(microseconds=1)
        )


@dataclass(frozen=True)
class Emitted:
    """What has been emitted for an asset: everything that was due at the position ``done`` of the
    table with the id ``table``. If more was due at a later position ``upto`` than one report may
    have, what starts at ``through`` or before is emitted, too. ``number`` counts the reports."""

    number: int
    table: str
    done: TableVersion | None
    upto: TableVersion | None = None
    through: datetime | None = None

    @staticmethod
    def decode(content: Mapping[str, Any]) -> Emitted:
        done, upto, through = (content[key] for key in ("done", "upto", "through"))
        return Emitted(
            content["number"],
            content["table"],
            TableVersion.decode(done) if done else None,
            TableVersion.decode(upto) if upto else None,
            datetime.fromisoformat(through) if through else None,
        )

    def encode(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "table": self.table,
            "done": self.done.encode() if self.done else None,
            "upto": self.upto.encode() if self.upto else None,
            "through": self.through.isoformat() if self.through else None,
        }

    @property
    def reached(self) -> TableVersion | None:
        """The last position that was compared; None if there was none."""
        return self.upto or self.done

    def may_be_due(self, newest: TableVersion, period: Period) -> bool:
        """Whether periods may be due at the ``newest`` position of the same table. While a restored
        table is behind, also what is left of a report waits: a reader would not find the rows."""
        if self.reached is None:
            return True
        if self.upto is not None:
            return not self.upto.is_ahead_of(newest, period)
        return self.reached.may_differ(newest, period)

    def after(
        self, due: Sequence[datetime], upto: TableVersion
    ) -> tuple[Sequence[datetime], Emitted]:
        """What the next report has, of the periods that are ``due`` at a position, and the progress
        with it."""
        left = [start for start in due if self.through is None or start > self.through]
        if len(left) <= MOST:
            return left, Emitted(self.number + 1, self.table, upto)
        now = left[:MOST]
        return now, replace(self, number=self.number + 1, upto=upto, through=now[-1])
