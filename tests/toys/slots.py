"""A toy operator: slots of equal length, counted from a moment that the declaration sets.

A slot that is over is final at once: ``slots`` replaces ``allowed_lateness``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import Columns
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.types import BIGINT, TIMESTAMP
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.flow.gold.pairs import Assignment

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Slots:
    every: timedelta
    origin: datetime


class SlotsKind(FoldOperator[Slots]):
    keys = (
        Key(
            "slots",
            "section",
            "Slots of equal length, counted from a moment.",
            replaces=("allowed_lateness",),
            children=(
                Key("every", "duration", "A slot's length.", True, low=INSTANT, high=YEAR),
                Key("origin", "text", "When slot 0 begins: a time in UTC.", required=True),
            ),
        ),
    )

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Slots | None:
        section = Section.of(at)
        every, origin = section.get("every"), section.get("origin")
        if every is None or origin is None:
            return None
        try:
            moment = datetime.fromisoformat(origin.text).replace(tzinfo=UTC)
        except ValueError:
            report.at(origin, f"{origin.text!r} is not a time")
            return None
        return Slots(every.value, moment)

    def meaning(self, operator: Slots) -> Mapping[str, Any]:
        return {"slots": operator}

    def columns(self, operator: Slots) -> Columns:
        return {"slot_start": TIMESTAMP, "slot_end": TIMESTAMP, "slot": BIGINT}

    def pairs_per_row(self, operator: Slots) -> int:
        return 1

    def plan(self, operator: Slots) -> Mapping[str, Any]:
        every, origin = format_duration(operator.every), operator.origin.isoformat()
        return {"slots": {"every": every, "origin": origin}}

    def summary(self, operator: Slots) -> tuple[str, str]:
        origin = operator.origin.isoformat()
        return "slots", f"every {format_duration(operator.every)} from {origin}"

    def assignment(self, operator: Slots, declared: GoldTable) -> Assignment:
        from pyspark.sql import functions as F

        from headgate.flow.gold.pairs import Assignment

        every, origin = operator.every // _MICROSECOND, (operator.origin - _EPOCH) // _MICROSECOND
        since = F.unix_micros("_event_time") - F.lit(origin)
        start = F.unix_micros("_event_time") - F.pmod(since, F.lit(every))
        slot = ((start - F.lit(origin)) / F.lit(every)).cast("bigint")

        def assign(rows: DataFrame) -> DataFrame:
            return rows.select(
                "*",
                F.timestamp_micros(start).alias("slot_start"),
                F.timestamp_micros(start + F.lit(every)).alias("slot_end"),
                slot.alias("slot"),
            )

        end = F.unix_micros("slot_end")
        return Assignment(assign, end, late_from=end, closed_by=end)


MEMBER = SlotsKind()
