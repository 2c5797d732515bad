"""Waits in the triggerer until a gold table is final up to a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.airflow.triggers.plain_trigger import PollingTrigger
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout


@dataclass(eq=False, repr=False, kw_only=True)
class GoldFinalTrigger(PollingTrigger):
    """Fires ``{"final_up_to": time}`` once; checks every ``interval`` seconds. Raises HeadgateError
    if ``up_to`` is not a time with a zone."""

    table: str
    up_to: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._up_to = _time(self.up_to)

    @property
    def about(self) -> str:
        return self.table

    def payload(self) -> dict[str, str] | None:
        return {"final_up_to": self._up_to.isoformat()} if self.is_final() else None

    def is_final(self) -> bool:
        """Whether the table is final up to the time. Raises HeadgateError if there is no such
        table, or its log is damaged."""
        from headgate.declaration.load import load
        from headgate.insight.final_periods.finality import final_up_to

        declared = load(self.file, needs_secrets=False)
        reached = final_up_to(Layout.of(self.root, declared.name), declared, self.table)
        return reached is not None and reached >= self._up_to


def _time(text: str) -> datetime:
    remedy = 'give a time with its zone: up_to="{{ data_interval_end }}"'
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise HeadgateError(f"up_to is not a time: {text!r}", remedy) from error
    if time.tzinfo is None:
        raise HeadgateError(f"up_to has no zone: {text!r}", remedy)
    return time
