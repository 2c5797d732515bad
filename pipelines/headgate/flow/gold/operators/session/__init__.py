"""Sessions: rows of a key without a longer pause between them. A row is the interval from its event
time to a gap later; rows whose intervals meet are one session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import INSTANT, YEAR, Key
from headgate.declaration.model import GoldTable
from headgate.declaration.names import WINDOW_COLUMNS, Columns
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.flow.gold.operators.fold_operator import FoldOperator

if TYPE_CHECKING:
    from headgate.flow.gold.affected import AffectedResults
    from headgate.flow.gold.aggregator import Aggregator
    from headgate.flow.gold.pairs import Assignment

_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True)
class Session:
    """``gap`` is the longest pause inside of a session."""

    gap: timedelta


class SessionKind(FoldOperator[Session]):
    keys = (
        Key(
            "session",
            "section",
            "Sessions: the events of a key without a pause of more than `gap`. A session ends "
            "`gap` after its last event. Write the gap, such as `session: 30 minutes`.",
            short="gap",
            children=(
                Key(
                    "gap",
                    "duration",
                    "The longest pause inside of a session (Spark, Flink: gap).",
                    required=True,
                    low=INSTANT,
                    high=YEAR,
                ),
            ),
        ),
    )
    is_window = True
    end_varies = True
    limits = "The events of one key are in one task of Spark, so `salt` does not help a hot key."

    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Session | None:
        gap = Section.of(at).get("gap")
        return None if gap is None else Session(gap.value)

    def meaning(self, operator: Session) -> Mapping[str, Any]:
        return {"window": {"gap": operator.gap}}

    def columns(self, operator: Session) -> Columns:
        return WINDOW_COLUMNS

    def pairs_per_row(self, operator: Session) -> int:
        return 1

    def reach(self, operator: Session) -> int:
        return operator.gap // _MICRO

    def final_up_to(self, operator: Session, watermark: datetime, lateness: timedelta) -> datetime:
        # A row at the end of a session belongs to it, so it is open until the moment after.
        return watermark - lateness - _MICRO

    def plan(self, operator: Session) -> Mapping[str, Any]:
        return {
            "window": {
                "shape": "session",
                "gap": format_duration(operator.gap),
                "windows_per_row": 1,
            }
        }

    def summary(self, operator: Session) -> tuple[str, str]:
        return "window", f"session, gap {format_duration(operator.gap)}"

    def assignment(self, operator: Session, declared: GoldTable) -> Assignment:
        from headgate.flow.gold.operators.session.sessions import assignment

        return assignment(self.reach(operator), declared.allowed_lateness, declared.times)

    def aggregator(self, declared: GoldTable, assignment: Assignment) -> Aggregator:
        from headgate.flow.gold.operators.session.merging import SessionAggregator

        return SessionAggregator(declared, assignment.end)

    def affected(
        self, declared: GoldTable, assignment: Assignment, aggregator: Aggregator
    ) -> AffectedResults:
        from headgate.flow.gold.operators.session.affected import AffectedSessions

        return AffectedSessions(declared, aggregator, assignment.end)


MEMBER = SessionKind()
