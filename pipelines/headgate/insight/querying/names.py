"""The names that tables have in queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from headgate.commands import Place
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import FILES, LATE, QUARANTINE, RECORDS, REJECTED
from headgate.declaration.model import Pipeline
from headgate.lake.storage.layout import Layout

LAYERS = tuple(kind.name for kind in (*RECORDS, FILES))

_MAIN = re.compile(r"\b(bronze|silver)\.")
_MUCH, _SOMEWHAT = 0.8, 0.5
"""How similar a name must be to another one, as a ratio of ``difflib``."""


@dataclass(frozen=True)
class Queried:
    """A pipeline whose tables a query reads. ``place`` is where commands about it are typed; None
    for that of this process. ``versions`` are the versions to read, by the tables' paths; other
    tables are read at their newest version."""

    pipeline: Pipeline
    layout: Layout
    place: Place | None = None
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """The names of a table in queries: ``schema.name``, and ``bare`` if that is unique."""

    schema: str
    name: str
    bare: str | None
    path: str


def tables(pipeline: Pipeline) -> Iterator[Named]:
    """Every table of a pipeline. No two of them have the same full name or ``bare`` name."""
    is_one = len(pipeline.sources) == 1
    for node in graph_of(pipeline):
        bare: str | None = node.name
        if node.kind in (QUARANTINE, FILES):
            bare = node.kind.name if is_one else None
        elif node.kind in (LATE, REJECTED):
            bare = None
        if node.kind in (*RECORDS, FILES):
            yield Named(node.kind.name, node.name, bare, node.path)


def known_names(queried: Sequence[Queried], short: Queried | None) -> list[str]:
    """The names of all tables, as a query may have them."""
    known: list[str] = []
    for each in queried:
        before = "" if each is short else f"{each.pipeline.name}."
        names = sorted(tables(each.pipeline), key=lambda table: table.schema == FILES.name)
        known += [f"{before}{t.schema}.{t.name}" for t in names if t.bare != FILES.name]
        known += [f"{before}{t.bare}" for t in names if t.bare == t.schema]
    return known


def nearest_names(given: str, known: Sequence[str]) -> list[str]:
    """The known names that are most similar to a given one: compared as a whole, or else by the
    part after the last dot, in the same layer first. If a name is in several layers, gold is
    preferred, then bronze and silver. Several names are returned only if several pipelines have
    them."""
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
