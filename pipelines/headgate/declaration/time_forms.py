"""How times are read, as immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnAmbiguous = Literal["earlier", "later", "quarantine"]


@dataclass(frozen=True)
class TimeForm:
    """``format`` is ``iso``, an epoch such as ``epoch_millis``, or a date pattern of Spark.
    ``zone`` is the IANA zone of local times: those without an offset. A local time that the clocks
    of the zone show twice is the ``ambiguous`` one of the two instants, or none of them."""

    format: str = "iso"
    zone: str | None = None
    ambiguous: OnAmbiguous = "earlier"


@dataclass(frozen=True)
class EventTime:
    """How a record's event time is read from ``column``, which may be a path into a struct, such as
    ``payload.at``. The other fields are those of ``TimeForm``."""

    column: str
    format: str = "iso"
    zone: str | None = None
    ambiguous: OnAmbiguous = "earlier"

    @property
    def form(self) -> TimeForm:
        return TimeForm(self.format, self.zone, self.ambiguous)
