"""The `publish` part of a declaration."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.declaration.kafka.section import options_of, written_of
from headgate.declaration.model import KafkaSink, Publication, PublishedLayer
from headgate.declaration.nearest import nearest
from headgate.declaration.reading.checked import Field, Report, Section
from headgate.declaration.sources import SOURCES

_OWNERS: dict[PublishedLayer, str] = {
    "gold": "gold table",
    "late": "gold table",
    "quarantine": "source",
}


def build_publication(
    section: Section,
    name: str,
    tables: Mapping[PublishedLayer, Collection[str]],
    sources: Mapping[str, Section],
    report: Report,
) -> Publication | None:
    """The publication, or None after reporting what is wrong with it. ``tables`` are the names
    that may follow each layer, ``sources`` where the pipeline reads."""
    found = _table(section.get("from"), tables, report)
    when = section.get("when")
    if found and when and found[0] != "gold":
        message = f"a row of {'.'.join(found)} never changes; remove the key, which is gold's"
        report.add(when.line, when.path, message)
    sink = _sink(section.section("kafka"))
    if sink:
        _check_no_loop(section, sink, sources, report)
    if found is None or sink is None:
        return None
    layer, table = found
    asked = section.text("when", "final") if layer == "gold" else None
    return Publication(name, layer, table, asked, sink)  # type: ignore[arg-type]


def _table(
    at: Field | None, tables: Mapping[PublishedLayer, Collection[str]], report: Report
) -> tuple[PublishedLayer, str] | None:
    if at is None:
        return None
    valid = [f"{layer}.{name}" for layer, names in tables.items() for name in names]
    prefix, _, name = at.text.partition(".")
    message = f"{at.text!r} is not gold.TABLE, late.TABLE or quarantine.SOURCE"
    for layer, owner in _OWNERS.items():
        if prefix == layer and name:
            if name in tables[layer]:
                return layer, name
            message = f"there is no {owner} {name!r}"
    report.add(at.line, at.path, message, nearest(at.text, valid))
    return None


def _sink(section: Section | None) -> KafkaSink | None:
    if section is None:
        return None
    servers, topic = section.get("servers"), section.get("topic")
    if servers is None or topic is None:
        return None
    return KafkaSink(servers.text, topic.text, options_of(section), written_of(section))


def _check_no_loop(
    section: Section, sink: KafkaSink, sources: Mapping[str, Section], report: Report
) -> None:
    at = section.section("kafka")
    topic = at.get("topic") if at else None
    for name, of in sources.items():
        given = ((kind, of.section(kind)) for kind in SOURCES.names())
        if topic and any(SOURCES[kind].would_read(part, sink) for kind, part in given if part):
            message = f"is a topic that the source {name!r} reads: what is published would return"
            report.add(topic.line, topic.path, message)
