"""Days, weeks and months of a time zone. Weeks begin on Monday."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import WINDOW_COLUMNS, Columns
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.flow.gold.operators.calendar.boundaries import UNITS, Unit, boundaries
from headgate.flow.gold.operators.calendar.zones import (
    nearest_zone,
    release,
    rules_of,
    zone_names,
)
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from headgate.flow.gold.pairs import Assignment

_SECOND = 1_000_000


@dataclass(frozen=True)
class Calendar:
    """Windows that are days, weeks or months by the clocks of ``zone``."""

    unit: Unit
    zone: str


class CalendarKind(FoldOperator[Calendar]):
    keys = (
        Key(
            "calendar",
            "section",
            "Days, weeks or months of a time zone: `calendar: {unit: day, zone: Europe/Berlin}`. "
            "A day has 23 or 25 hours if the clocks are changed on it.",
            children=(
                Key(
                    "unit",
                    "choice",
                    "What a window is. Weeks begin on Monday.",
                    required=True,
                    choices=UNITS,
                ),
                Key(
                    "zone",
                    "text",
                    "The IANA time zone, such as `Europe/Berlin`. Its rules are those of the "
                    "installed package tzdata, and a part of the table's definition.",
                    required=True,
                ),
            ),
        ),
    )
    is_window = True

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Calendar | None:
        section = Section.of(at)
        unit, zone = section.get("unit"), section.get("zone")
        if zone is not None and zone.text not in zone_names():
            message = f"{zone.text!r} is not an IANA time zone; write one such as Europe/Berlin"
            report.at(zone, message, nearest_zone(zone.text))
            return None
        return None if unit is None or zone is None else Calendar(unit.value, zone.text)

    def meaning(self, operator: Calendar) -> Mapping[str, Any]:
        # The rules, and not the name: a renamed zone has the same rows, and new rules have others.
        return {"window": {"unit": operator.unit, "rules": rules_of(operator.zone).digest}}

    def columns(self, operator: Calendar) -> Columns:
        return WINDOW_COLUMNS

    def pairs_per_row(self, operator: Calendar) -> int:
        return 1

    def first_after(self, operator: Calendar, time: int) -> tuple[int, int]:
        begin, end = boundaries(operator.unit, operator.zone).around(time // _SECOND)
        return begin * _SECOND, end * _SECOND

    def plan(self, operator: Calendar) -> Mapping[str, Any]:
        return {
            "window": {
                "shape": "calendar",
                "unit": operator.unit,
                "zone": operator.zone,
                "rules": rules_of(operator.zone).digest,
                "tzdata": release(),
                "windows_per_row": 1,
            }
        }

    def summary(self, operator: Calendar) -> tuple[str, str]:
        zone = f"{operator.zone} by the rules {rules_of(operator.zone).digest} (tzdata {release()})"
        return "window", f"calendar {operator.unit} in {zone}"

    def assignment(self, operator: Calendar, declared: GoldTable) -> Assignment:
        from headgate.flow.gold.operators.calendar.assigning import assignment

        windows = boundaries(operator.unit, operator.zone)
        return assignment(windows, declared.allowed_lateness, declared.times)


MEMBER = CalendarKind()
