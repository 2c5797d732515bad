"""The documents of a gate: why a table is held, and what people ask of it.

The table's log is the truth: a held table has no commit for the held batches. A document that a
crash has left behind is recognised by its batch id, which the table has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.expectations.result import RuleResult
from headgate.storage.documents import read_document, write_document
from headgate.storage.layout import Layout
from headgate.tables.table import Table


@dataclass(frozen=True)
class Hold:
    """A table stays at batch id ``n``, because the version up to ``upto`` breaks the rules of
    ``results``. ``since`` is the time of the first validation that held it, ``at`` that of the
    last."""

    table: str
    n: int
    upto: int
    since: datetime
    at: datetime
    results: Sequence[RuleResult]

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """The results that hold the table."""
        return tuple(result for result in self.results if result.holds)

    @property
    def why(self) -> str:
        """The rules that hold the table, and what they saw."""
        return "; ".join(map(str, self.failed))

    def as_dict(self) -> dict[str, Any]:
        content = asdict(self)
        return content | {"since": self.since.isoformat(), "at": self.at.isoformat()}


@dataclass(frozen=True)
class Release:
    """A person lets the held version up to batch id ``upto`` become visible."""

    upto: int
    by: str
    reason: str
    at: datetime

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"at": self.at.isoformat()}


def held(layout: Layout, table: str) -> Hold | None:
    """Why a gold table is held, as its last validation said; None if it was not held."""
    document = read_document(layout.storage, _path(table, "held"))
    if document is None:
        return None
    return Hold(
        table=table,
        n=document["n"],
        upto=document["upto"],
        since=datetime.fromisoformat(document["since"]),
        at=datetime.fromisoformat(document["at"]),
        results=tuple(RuleResult(**each) for each in document["results"]),
    )


def holds(layout: Layout, pipeline: Pipeline) -> tuple[Hold, ...]:
    """Why gold tables of a pipeline are held now. Raises HeadgateError if a document or a table is
    damaged."""
    found = (held(layout, name) for name, gold in pipeline.gold.items() if gold.suite is not None)
    return tuple(hold for hold in found if hold is not None and _is_at(layout, pipeline, hold))


def _is_at(layout: Layout, pipeline: Pipeline, hold: Hold) -> bool:
    """Whether the table still is where the hold found it."""
    table = Table(layout.storage, GOLD.path(hold.table), pipeline=pipeline.name)
    return table.exists and table.refresh().n == hold.n


def hold(layout: Layout, found: Hold) -> None:
    write_document(layout.storage, _path(found.table, "held"), found.as_dict())


def let_go(layout: Layout, table: str) -> None:
    """The table is not held any more: remove its documents."""
    for name in ("held", "release", "retry"):
        layout.storage.remove(_path(table, name))


def released(layout: Layout, table: str) -> Release | None:
    document = read_document(layout.storage, _path(table, "release"))
    if document is None:
        return None
    at = datetime.fromisoformat(document["at"])
    return Release(document["upto"], document["by"], document["reason"], at)


def release(layout: Layout, table: str, given: Release) -> None:
    write_document(layout.storage, _path(table, "release"), given.as_dict())


def ask_retry(layout: Layout, table: str, now: datetime) -> None:
    """Let the next driver, or the running one, validate the held version again at once."""
    write_document(layout.storage, _path(table, "retry"), {"at": now.isoformat()})


def retry_asked(layout: Layout, table: str) -> bool:
    return layout.storage.exists(_path(table, "retry"))


def retried(layout: Layout, table: str) -> None:
    layout.storage.remove(_path(table, "retry"))


def _path(table: str, name: str) -> str:
    return Layout.document(f"gates/{table}.{name}")
