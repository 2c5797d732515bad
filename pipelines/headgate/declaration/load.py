"""From a YAML file to a :class:`~headgate.declaration.model.Pipeline`: ``load(path)``.

The loader reads the file, its suites and the values of its placeholders, and changes nothing. All
errors of a declaration are found here, before anything starts, and raised as one DeclarationError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path

from headgate.declaration.digest import digest, meaning, table_digests
from headgate.declaration.errors import DeclarationError, Invalid
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.files import project_folder
from headgate.declaration.keys.pipeline import pipeline_key
from headgate.declaration.model import (
    BackfillSchedule,
    CircuitBreaker,
    Pipeline,
    Publication,
    PublishedLayer,
    SavepointSchedule,
    SilverTable,
    Source,
)
from headgate.declaration.names import RESERVED_TABLES, check_not_taken
from headgate.declaration.reading.checked import Field, Report, Section, partial
from headgate.declaration.reading.checker import Checker
from headgate.declaration.reading.files import parse, read_file
from headgate.declaration.sections.gold import build_gold
from headgate.declaration.sections.metrics import build_metrics
from headgate.declaration.sections.publish import build_publication
from headgate.declaration.sections.silver import ReadSuite, build_silver
from headgate.declaration.sections.source import (
    added_columns,
    build_source,
    scope_of,
    time_column,
)
from headgate.declaration.suites.reading import SuiteReading

_ONE_SOURCE = (
    "several sources are not built yet; keep one; instead, give each a pipeline of its own, and "
    "join their tables in headgate query"
)


def load(path: Path | str, *, needs_secrets: bool = True) -> Pipeline:
    """Read and check a declaration. Raises DeclarationError with all the problems it has.

    Callers that only read tables set ``needs_secrets`` to false: the values of placeholders in
    sinks and client properties may then be missing.
    """
    file = Path(path)
    report = Report(file)
    text = read_file(file, report, "declaration")
    return _load(text, report, needs_secrets=needs_secrets)


def load_text(
    text: str,
    file: Path,
    suites: Mapping[str, str] | None = None,
    *,
    needs_secrets: bool = True,
) -> Pipeline:
    """Check a declaration as if ``file`` had this text: its relative paths are resolved as in
    ``file``. ``suites`` are the texts of its suites by their names; without them, their files are
    read. ``needs_secrets`` is as for ``load``. Raises DeclarationError with all the problems it
    has."""
    return _load(text, Report(file), suites, needs_secrets=needs_secrets)


def _load(
    text: str | None,
    report: Report,
    suites: Mapping[str, str] | None = None,
    *,
    needs_secrets: bool = True,
) -> Pipeline:
    file = report.file
    node = parse(text, report)
    if node is not None:
        folder = project_folder(file)
        checker = Checker(report, folder, needs_secrets=needs_secrets)
        root = checker.check(node, pipeline_key(), "", 1)
        reading = SuiteReading(report, folder, suites)
        pipeline = _build(Section.of(root), report, reading, text or "") if root else None
        if pipeline is not None and not report.problems:
            return pipeline
    raise DeclarationError(file, report.problems)


def _build(root: Section, report: Report, reading: SuiteReading, text: str) -> Pipeline | None:
    source_sections = _sections(root.entries("sources"))
    silver_sections = _sections(root.entries("silver"))
    gold_sections = _sections(root.entries("gold"))
    _check_tables(root, report)
    project = project_folder(report.file)
    sources: dict[str, Source] = {}
    for name, section in source_sections.items():
        source = build_source(section, name, report, project)
        if source is not None:
            sources[name] = source
    silver, scopes = _build_silver(root, silver_sections, source_sections, reading.read, report)
    built = {n: build_gold(s, n, scopes, reading.read, report) for n, s in gold_sections.items()}
    gold = {name: table for name, table in built.items() if table is not None}
    publish = _build_publications(root, source_sections, report)
    backfill = _build_backfill(root.section("airflow"), report)
    metrics = build_metrics(root.section("metrics"), report, project)
    circuit_breaker = _build_circuit_breaker(root.section("circuit_breaker"), report)
    pipeline = root.text("pipeline")
    if report.problems or pipeline is None:
        return None
    meant = meaning(pipeline, sources, silver, gold)
    return Pipeline(
        name=pipeline,
        sources=sources,
        silver=silver,
        gold=gold,
        jobs=root.text("jobs", "fused"),  # type: ignore[arg-type]
        file=report.file,
        digest=digest(meant),
        definitions=table_digests(meant),
        publish=publish,
        savepoints=_build_schedule(root.section("savepoints")),
        circuit_breaker=circuit_breaker,
        backfill=backfill,
        metrics=metrics,
        text=text,
    )


def _build_backfill(airflow: Section | None, report: Report) -> BackfillSchedule | None:
    section = airflow.section("backfill") if airflow else None
    if section is None:
        return None
    mode, publish = section.text("mode", "verify"), section.get("publish")
    if publish is not None and mode != "rebuild" and not section.reported("mode"):
        report.add(publish.line, publish.path, "has no effect without mode: rebuild")
    return BackfillSchedule(
        every=section.duration("every", timedelta(days=1)),
        mode=mode,  # type: ignore[arg-type]
        publish=section.text("publish", "when_equal"),  # type: ignore[arg-type]
    )


def _build_schedule(section: Section | None) -> SavepointSchedule | None:
    if section is None:
        return None
    return SavepointSchedule(
        every=section.duration("every", timedelta(hours=1)),
        keep=section.integer("keep", 5),
        keep_for=section.duration("keep_for", timedelta(days=7)),
    )


def _build_circuit_breaker(section: Section | None, report: Report) -> CircuitBreaker | None:
    if section is None:
        return None
    limits = ("refused_above", "records_below")
    above, below = map(section.get, limits)
    if above is None and below is None and not any(map(section.reported, limits)):
        report.add(section.line, section.path, "needs refused_above or records_below")
    return CircuitBreaker(
        refused_above=above.value if above else None,
        records_below=below.value if below else None,
        batches=section.integer("batches", 10),
    )


def _build_publications(
    root: Section, sources: Mapping[str, Section], report: Report
) -> dict[str, Publication]:
    gold = partial(root.entries("gold"), missing=root.reported("gold"))
    tables: dict[PublishedLayer, Collection[str]] = {
        "gold": gold,
        "late": gold,
        "gate": partial(_gated(gold), missing=root.reported("gold")),
        "quarantine": partial(sources, missing=root.reported("sources")),
    }
    publish: dict[str, Publication] = {}
    for name, section in _sections(root.entries("publish")).items():
        publication = build_publication(section, name, tables, sources, report)
        if publication is not None:
            publish[name] = publication
    return publish


def _gated(gold: Mapping[str, Field]) -> dict[str, Field]:
    """The gold tables that have a gate, or whose sections are wrong."""
    sections = {name: Section.of(field) for name, field in gold.items()}
    wanted = (n for n, s in sections.items() if s.get("expectations") or s.reported("expectations"))
    return {name: gold[name] for name in wanted}


def _build_silver(
    root: Section,
    sections: Mapping[str, Section],
    sources: Mapping[str, Section],
    read_suite: ReadSuite,
    report: Report,
) -> tuple[dict[str, SilverTable], dict[str, Scope]]:
    known: dict[str, Scope] = {name: scope_of(section) for name, section in sources.items()}
    fields = partial(known, missing=root.reported("sources"))
    ours = {name: added_columns(section) for name, section in sources.items()}
    times = {name: time_column(section) for name, section in sources.items()}
    tables: dict[str, SilverTable] = {}
    scopes: dict[str, Scope] = partial({}, missing=root.reported("silver"))
    for name, section in sections.items():
        tables[name], scopes[name] = build_silver(
            section, name, fields, ours, times, read_suite, report
        )
    return tables, scopes


def _sections(entries: Mapping[str, Field]) -> dict[str, Section]:
    return {name: Section.of(field) for name, field in entries.items()}


def _check_tables(root: Section, report: Report) -> None:
    """Reports a second source, and names that are used twice: every table is queried by its name
    alone."""
    sources = list(root.entries("sources").values())
    for another in sources[1:]:
        report.add(another.line, another.path, _ONE_SOURCE)
    taken = dict.fromkeys(RESERVED_TABLES, "is a table of every pipeline")
    for layer, owner in (("sources", "a source"), ("silver", "a silver table")):
        _check_taken(root.entries(layer), taken, report)
        taken |= dict.fromkeys(root.entries(layer), f"is taken by {owner}")
    _check_taken(root.entries("gold"), taken, report)


def _check_taken(entries: Mapping[str, Field], taken: Mapping[str, str], report: Report) -> None:
    for name, field in entries.items():
        try:
            check_not_taken(name, taken)
        except Invalid as error:
            report.invalid(field, error)
