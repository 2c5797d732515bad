"""The names of tables: control, and the tables of each source. A pipeline with one source does not
name it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

ONE = ("",)
"""The sources of a pipeline with one source."""
KINDS = ("files", "bronze", "quarantine", "silver", "late", "gold")
"""In the order in which a batch moves through them."""
BUILT = KINDS[1:]
"""The kinds of tables that may be reset, in the order in which they are."""
SIDES = {"quarantine": "silver", "late": "gold"}
UPSTREAM = {"silver": "bronze", "quarantine": "bronze", "gold": "silver", "late": "silver"}
WITHOUT_SIDES = ("b",)
"""A source whose silver and gold have no side tables, so that there is less to search."""


@cache
def table_of(kind: str, source: str) -> str:
    return f"{kind} {source}".rstrip()


@cache
def kind_of(table: str) -> str:
    return table.partition(" ")[0]


@cache
def source_of(table: str) -> str:
    return table.partition(" ")[2]


@cache
def beside(table: str, kind: str) -> str:
    """The table of another kind of the same source."""
    return table_of(kind, source_of(table))


@cache
def tables_of(sources: tuple[str, ...], kinds: tuple[str, ...] = KINDS) -> tuple[str, ...]:
    """All tables of some kinds; control comes first, if it is among them."""
    found = (table_of(kind, source) for kind in kinds for source in sources_with(kind, sources))
    return tuple(dict.fromkeys(found))


def sources_with(kind: str, sources: Iterable[str]) -> Iterable[str]:
    """The sources that have a table of a kind. Control is of no source."""
    if kind == "control":
        return ("",)
    return (each for each in sources if kind not in SIDES or each not in WITHOUT_SIDES)


def sides_of(sources: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Each side table, with the dense table of its stage."""
    for side, dense in SIDES.items():
        for source in sources_with(side, sources):
            yield table_of(side, source), table_of(dense, source)
