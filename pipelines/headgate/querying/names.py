"""The names that tables have in queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.commands import Place
from headgate.declaration.kinds import FILES, LATE, QUARANTINE, RECORDS, REJECTED
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.storage.layout import Layout

LAYERS = ("bronze", "silver", "gold", "late", "quarantine", "rejected", "_headgate")


@dataclass(frozen=True)
class Queried:
    """A pipeline whose tables a query reads. ``place`` is where commands about it are typed; that
    of this process if it is None. ``versions`` are those to read, by the tables' paths; of other
    tables, the newest."""

    pipeline: Pipeline
    layout: Layout
    place: Place | None = None
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """The names of a table in queries: ``schema.name``, and ``bare`` where that is unique."""

    schema: str
    name: str
    bare: str | None
    path: str


def tables(pipeline: Pipeline) -> Iterator[Named]:
    """Every table of a pipeline. A declaration gives no name to two of them."""
    for node in graph_of(pipeline):
        if node.kind == FILES:
            yield Named("_headgate", "files", "files", node.path)
        elif node.kind in RECORDS:
            bare = {QUARANTINE: "quarantine", LATE: None, REJECTED: None}.get(node.kind, node.name)
            yield Named(node.kind.name, node.name, bare, node.path)


def known_names(queried: Sequence[Queried], short: Queried | None) -> list[str]:
    """The names of all tables, as a query may have them."""
    known: list[str] = []
    for each in queried:
        before = "" if each is short else f"{each.pipeline.name}."
        layers = [t for t in tables(each.pipeline) if t.schema[0] != "_"]
        known += [f"{before}{t.schema}.{t.name}" for t in layers]
        known += [f"{before}{name}" for name in ("quarantine", "files")]
    return known
