"""Gold tables as assets of Airflow. Their partitions are final hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from airflow.sdk import Asset

from headgate.airflow.projects import declared_in, place
from headgate.declaration.kinds import GOLD
from headgate.insight.final_periods.periods import DAY, HOUR, Period


@dataclass(frozen=True)
class GoldTable:
    """The gold table ``name`` of a pipeline; ``uri`` is where Delta readers find it."""

    pipeline: str
    name: str
    uri: str

    @property
    def asset(self) -> Asset:
        """The asset of the table's hours (``gold_asset``)."""
        return gold_asset(self.pipeline, self.name)

    @property
    def days(self) -> Asset:
        """The asset of the table's days (``gold_days``)."""
        return gold_days(self.pipeline, self.name)

    @staticmethod
    def hour(partition_key: str) -> tuple[datetime, datetime]:
        """Start and end of the hour that a partition key names. Raises ValueError."""
        return HOUR.of(partition_key)

    @staticmethod
    def day(partition_key: str) -> tuple[datetime, datetime]:
        """Start and end of the day that a partition key names. Raises ValueError."""
        return DAY.of(partition_key)


def gold_asset(pipeline: str, table: str) -> Asset:
    """The asset of a gold table's hours. Its events have a partition key. ``2026-11-20T14:00:00``
    means: every window that ends within that hour (in UTC), or at its end, is final, and there is
    one. If a row of it changes later, the event is emitted again."""
    return asset_of(pipeline, table, HOUR)


def gold_days(pipeline: str, table: str) -> Asset:
    """As ``gold_asset``, for days in UTC, with keys such as ``2026-11-20``."""
    return asset_of(pipeline, table, DAY)


def asset_of(pipeline: str, table: str, period: Period) -> Asset:
    name, uri = f"{pipeline}.gold.{table}", f"headgate://{pipeline}/gold/{table}"
    of = period.name + "s"
    return Asset(name, uri) if period == HOUR else Asset(f"{name}.{of}", f"{uri}/{of}")


def gold_tables(folder: str | Path, *, root: str | Path | None = None) -> tuple[GoldTable, ...]:
    """The gold tables of every declaration in a folder; ``folder`` and ``root`` as in
    ``build_dags``."""
    return tuple(_gold_tables(place(folder), root))


def _gold_tables(folder: Path, root: str | Path | None) -> Iterator[GoldTable]:
    for declared in declared_in(folder, root):
        layout = declared.stream.layout
        for name in declared.gold:
            uri = layout.storage.uri(GOLD.path(name))
            yield GoldTable(declared.stream.name, name, uri)
