"""The `publish` part of a declaration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.contracts.source import CONNECTORS
from headgate.declaration.keys.pipeline import WHEN
from headgate.declaration.model import Publication, PublishedLayer
from headgate.declaration.names import nearest
from headgate.declaration.reading.checked import Field, ProblemReport, Section

_OWNERS: dict[PublishedLayer, str] = {
    "gold": "gold table",
    "late": "gold table",
    "quarantine": "source",
    "gate": "gold table with expectations",
}


def build_publication(
    section: Section,
    name: str,
    tables: Mapping[PublishedLayer, Collection[str]],
    endless: Collection[str],
    live: Collection[str],
    sources: Mapping[str, Section],
    report: ProblemReport,
) -> Publication | None:
    """The publication, or None after reporting what is wrong with it. ``tables`` are the valid
    names for each layer, ``endless`` the gold tables whose rows are never final, ``live`` those
    that are live, ``sources`` the sections of the sources."""
    found = _table(section.get("from"), tables, report)
    when = section.get("when")
    if found and when and found[0] != "gold":
        message = f"a row of {'.'.join(found)} never changes; remove the key: it is for gold only"
        report.at(when, message)
    sink = _sink(section, sources, report)
    if found is None or sink is None:
        return None
    layer, table = found
    asked = section.text("when", WHEN[0]) if layer == "gold" else None
    if layer == "gold" and table in endless and asked != "update":
        report.at(when or section, f"no row of gold.{table} is ever final", "when: update")
    if when and layer == "gold" and table in live and asked == "update":
        message = f"each step replaces the open rows of gold.{table}; send its final rows"
        report.at(when, message, "final")
    return Publication(name, layer, table, asked, *sink)  # type: ignore[arg-type]


def _table(
    at: Field | None, tables: Mapping[PublishedLayer, Collection[str]], report: ProblemReport
) -> tuple[PublishedLayer, str] | None:
    if at is None:
        return None
    valid = [f"{layer}.{name}" for layer, names in tables.items() for name in names]
    prefix, _, name = at.text.partition(".")
    message = f"{at.text!r} is not gold.TABLE, late.TABLE, quarantine.SOURCE or gate.TABLE"
    for layer, owner in _OWNERS.items():
        if prefix == layer and name:
            if name in tables[layer]:
                return layer, name
            message = f"there is no {owner} {name!r}"
    report.at(at, message, nearest(at.text, valid))
    return None


def _sink(
    section: Section, sources: Mapping[str, Section], report: ProblemReport
) -> tuple[str, Any] | None:
    """The sink whose key is given, and the value that it has built; None if a problem is
    reported."""
    for name in SINKS.names():
        at = section.section(name)
        if at is not None:
            built = SINKS[name].build(at, report)
            if built is None:
                return None
            _check_no_loop(at, name, built, sources, report)
            return name, built
    return None


def _check_no_loop(
    at: Section, kind: str, sink: Any, sources: Mapping[str, Section], report: ProblemReport
) -> None:
    place = at.get(SINKS[kind].place)
    for name, of in sources.items():
        given = ((kind, of.section(kind)) for kind in CONNECTORS.names())
        if place and any(CONNECTORS[kind].would_read(part, sink) for kind, part in given if part):
            what = f"is a {SINKS[kind].place} that the source {name!r} reads"
            report.at(place, f"{what}: what is published would return")
