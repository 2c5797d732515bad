"""The names that tables have in queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from headgate.commands import Place
from headgate.declaration.kinds import FILES, LATE, QUARANTINE, RECORDS, REJECTED
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.storage.layout import Layout

LAYERS = ("bronze", "silver", "gold", "late", "quarantine", "rejected", "_headgate")

_MAIN = re.compile(r"\b(bronze|silver)\.")
_MUCH, _SOMEWHAT = 0.8, 0.5
"""How much a name is like another one, as ``difflib`` counts."""


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


def nearest_names(given: str, known: Sequence[str]) -> list[str]:
    """The known names that are most like a given one: as a whole, or without what is before the
    last dot, in its own layer first. Of tables with one name in several layers, gold's is meant, or
    else one of bronze or silver; there are several only in several pipelines."""
    given = given.lower()
    if near := get_close_matches(given, known, 1, _MUCH):
        return near
    before, _, last = given.rpartition(".")
    beside = [each for each in known if before and f".{each}".rpartition(".")[0].endswith(before)]
    return _nearest_of(last, beside) or _nearest_of(last, known)


def _nearest_of(last: str, known: Sequence[str]) -> list[str]:
    names = sorted({each.rpartition(".")[2] for each in known})
    holding = [each for each in names if last in each]
    near = get_close_matches(last, holding, 1, 0) or get_close_matches(last, names, 1, _SOMEWHAT)
    found = [each for each in known if [each.rpartition(".")[2]] == near]
    return [each for each in found if _rank(each) == max(map(_rank, found))]


def _rank(name: str) -> int:
    return 2 if ".gold." in f".{name}" else 1 if _MAIN.search(name) else 0
