"""Triggers that are made of plain values."""

from __future__ import annotations

from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent


class PlainTrigger(BaseTrigger):
    """Made again elsewhere from the keywords that it was made with."""

    def __init__(self, **kept: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._kept = kept

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", self._kept


def event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
