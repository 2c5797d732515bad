"""Gold tables as assets of Airflow. Their partitions are final hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from airflow.sdk import Asset

from headgate.airflow.projects import declared_in, place
from headgate.declaration.kinds import GOLD
from headgate.supervision import hours


@dataclass(frozen=True)
class GoldTable:
    """The gold table ``name`` of a pipeline; ``uri`` is where Delta readers find it."""

    pipeline: str
    name: str
    uri: str

    @property
    def asset(self) -> Asset:
        """The asset of the table. Its events have a partition key. ``2026-11-20T14:00:00`` means:
        every window that ends within that hour, or at its end, is final (``hours.of`` parses the
        key)."""
        return gold_asset(self.pipeline, self.name)

    @staticmethod
    def hour(partition_key: str) -> tuple[datetime, datetime]:
        """Start and end of the hour that a partition key names. Raises ValueError."""
        return hours.of(partition_key)


def gold_asset(pipeline: str, table: str) -> Asset:
    return Asset(f"{pipeline}.gold.{table}", f"headgate://{pipeline}/gold/{table}")


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
