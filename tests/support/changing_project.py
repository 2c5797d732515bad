"""A pipeline over records with nested fields. Changes of its declaration add more fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.history.savepoints.deployment import deployment_of
from headgate.lake.tables.live_files import live_paths
from tests.support.engine import Engine
from tests.support.nested_project import NestedProject, event
from tests.support.tables import Row

ADDED = (
    (
        "at: struct<lat: double, lon: double>",
        "at: struct<lat: double, lon: double, h: int>, zip: int",
    ),
    ("tags: map<string, int>", "tags: map<string, int>, vat: decimal(4,2)"),
    ("struct<n: int>", "struct<n: int, m: array<string>>"),
)
TABLES = ("bronze/raw", "quarantine/raw", "silver/all", "silver/clean", "rejected/clean")
ALL = (*TABLES, "gold/per_minute", "late/per_minute")


def full(name: str, minute: int = 0, **fields: Any) -> Row:
    """An event with a value in every field, including those that are added later."""
    address = {"city": "Oslo", "zip": 7, "at": {"lat": 1.5, "lon": 2.5, "h": 3}}
    item = {"sku": "a", "price": 1, "vat": "0.25"}
    parts = {"k": {"n": 1, "m": ["x"]}, "none": None}
    return event(name, minute, address=address, items=[item, None], parts=parts, **fields)


def values(row: Row) -> tuple[Any, ...]:
    """The values of the added fields of a row. The other nested fields are checked."""
    address, (item, _), ((_, part), _) = row["address"], row["items"], row["parts"]
    added = (address.get("zip"), address["at"].get("h"), item.get("vat"), part.get("m"))
    assert (address["city"], address["at"]["lat"], item["sku"], part["n"]) == ("Oslo", 1.5, "a", 1)
    return added


def files(project: NestedProject) -> dict[str, frozenset[str]]:
    """The data files of each table."""
    return {path: live_paths(DeltaTable(str(project.root / "readings" / path))) for path in ALL}


class ChangingProject(NestedProject):
    """A project whose declaration changes."""

    def run(self, *files: Iterable[Row], engine: Engine | None = None) -> Engine:
        engine = engine or self.engine()
        for events in files:
            self.land(events)
            engine.run_all()
        return engine

    def change(self, *changes: tuple[str, str]) -> None:
        text = self.declaration.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.declaration.write_text(text)

    def actions(self, engine: Engine) -> dict[str, str]:
        found = deployment_of(engine.layout, load(self.declaration))
        return {plan.table: plan.action for plan in found.tables}

    def added(self, table: str) -> dict[str, tuple[Any, ...]]:
        """The values of the added fields in the rows of a silver or late table, by event id."""
        return {row["_event_id"]: values(row) for row in self.read(table)}

    def rows(self) -> dict[str, list[str]]:
        """The rows of every table, without the times at which they were written."""
        moments = dict.fromkeys(("updated_at", "ingested_at", "seen_at"), 0)
        return {path: sorted(repr(row | moments) for row in self.read(path)) for path in ALL}
