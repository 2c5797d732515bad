"""From a YAML file to a :class:`~headgate.declaration.model.Pipeline`: ``load(path)``.

The loader reads the file, its suites and the values of its placeholders, and changes nothing. All
errors of a declaration are found here, before anything starts, and raised as one DeclarationError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.digest import digest, meaning, table_digests
from headgate.declaration.errors import DeclarationError
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.files import project_folder
from headgate.declaration.keys.pipeline import pipeline_key
from headgate.declaration.model import (
    GoldTable,
    Pipeline,
    Publication,
    PublishedLayer,
    SavepointSchedule,
    SilverTable,
)
from headgate.declaration.names import RESERVED_TABLES
from headgate.declaration.reading.checked import (
    Field,
    ProblemReport,
    Section,
    Value,
    built,
    partial,
)
from headgate.declaration.reading.checker import Checker
from headgate.declaration.reading.document import parse, read_file
from headgate.declaration.sections.gold import build_gold_tables
from headgate.declaration.sections.publish import build_publication
from headgate.declaration.sections.settings import (
    build_backfill,
    build_circuit_breaker,
    build_metrics,
)
from headgate.declaration.sections.silver import ReadSuite, build_silver
from headgate.declaration.sections.source import SourceColumns, build_source
from headgate.declaration.suites.reading import SuiteReading


def load(
    path: Path | str,
    *,
    text: str | None = None,
    suites: Mapping[str, str] | None = None,
    needs_secrets: bool = True,
) -> Pipeline:
    """Read and check a declaration. Raises DeclarationError with all the problems it has.

    With ``text``, the file is checked as if it had this text: its relative paths are resolved as in
    the file, which is not read. ``suites`` are the texts of its suites by their names; without
    them, their files are read. Callers that only read tables set ``needs_secrets`` to false: the
    values of placeholders in sinks and client properties may then be missing.
    """
    report = ProblemReport(Path(path))
    if text is None:
        text = read_file(report.file, report, "declaration")
    node = parse(text, report)
    if node is not None:
        folder = project_folder(report.file)
        checker = Checker(report, folder, needs_secrets=needs_secrets)
        root = checker.check(node, pipeline_key(), "", 1)
        reading = SuiteReading(report, folder, suites)
        pipeline = _build(Section.of(root), report, reading, text or "") if root else None
        if pipeline is not None and not report.problems:
            return pipeline
    raise DeclarationError(report.file, report.problems)


def _build(
    root: Section, report: ProblemReport, reading: SuiteReading, text: str
) -> Pipeline | None:
    source_sections = _sections(root.entries("sources"))
    silver_sections = _sections(root.entries("silver"))
    gold_sections = _sections(root.entries("gold"))
    _check_tables(root, report)
    project = project_folder(report.file)
    is_only = len(source_sections) == 1
    sources = _made(
        {
            name: build_source(section, name, report, project, is_only=is_only)
            for name, section in source_sections.items()
        }
    )
    silver, scopes = _build_silver(root, silver_sections, source_sections, reading.read, report)
    read_by = {name: table.source for name, table in silver.items()}
    gold = build_gold_tables(gold_sections, scopes, read_by, reading.read, report)
    publish = _build_publications(root, source_sections, gold, report)
    backfill = build_backfill(root.section("airflow"), report)
    metrics = build_metrics(root.section("metrics"), report, project)
    circuit_breaker = build_circuit_breaker(root.section("circuit_breaker"), report)
    pipeline = root.text("pipeline")
    _check_backfill(root, gold, report)
    if report.problems or pipeline is None:
        return None
    meant = meaning(pipeline, sources, silver, gold)
    return Pipeline(
        name=pipeline,
        sources=sources,
        silver=silver,
        gold=gold,
        file=report.file,
        digest=digest(meant),
        definitions=table_digests(meant),
        publish=publish,
        savepoints=built(SavepointSchedule, root.section("savepoints")),
        circuit_breaker=circuit_breaker,
        backfill=backfill,
        metrics=metrics,
        text=text,
        **root.values("jobs"),
    )


def _check_backfill(root: Section, gold: Mapping[str, GoldTable], report: ProblemReport) -> None:
    """Reports a schedule of backfills that would have nothing to do."""
    airflow = root.section("airflow")
    at = airflow.get("backfill") if airflow else None
    can = any(not each.is_rollup and not operator_of(each).appends for each in gold.values())
    if at is not None and gold and not can and not root.reported("gold"):
        report.at(
            at, "no gold table can be backfilled: only tables that read silver by windows can"
        )


def _build_publications(
    root: Section,
    sources: Mapping[str, Section],
    built: Mapping[str, GoldTable],
    report: ProblemReport,
) -> dict[str, Publication]:
    endless = {name for name, table in built.items() if not operator_of(table).ends}
    live = {name for name, table in built.items() if table.live}
    gold = partial(root.entries("gold"), missing=root.reported("gold"))
    tables: dict[PublishedLayer, Collection[str]] = {
        "gold": gold,
        "late": partial(_with_late_rows(gold, built), missing=root.reported("gold")),
        "gate": partial(_gated(gold), missing=root.reported("gold")),
        "quarantine": partial(sources, missing=root.reported("sources")),
    }
    sections = _sections(root.entries("publish"))
    return _made(
        {
            name: build_publication(section, name, tables, endless, live, sources, report)
            for name, section in sections.items()
        }
    )


def _with_late_rows(gold: Mapping[str, Field], built: Mapping[str, GoldTable]) -> dict[str, Field]:
    """The gold tables that have a late table, or whose sections are wrong."""
    return {n: at for n, at in gold.items() if n not in built or not built[n].is_rollup}


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
    report: ProblemReport,
) -> tuple[dict[str, SilverTable], dict[str, Scope]]:
    columns = {name: SourceColumns.of(section) for name, section in sources.items()}
    known = partial(columns, missing=root.reported("sources"))
    tables: dict[str, SilverTable] = {}
    scopes: dict[str, Scope] = partial({}, missing=root.reported("silver"))
    for name, section in sections.items():
        tables[name], scopes[name] = build_silver(section, name, known, read_suite, report)
    return tables, scopes


def _sections(entries: Mapping[str, Field]) -> dict[str, Section]:
    return {name: Section.of(field) for name, field in entries.items()}


def _made(values: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}


def _check_tables(root: Section, report: ProblemReport) -> None:
    """Reports names that are used twice: every table is queried by its name alone."""
    owners = {"sources": "a source", "silver": "a silver table", "gold": "a gold table"}
    layers = ((root.entries(layer), owner) for layer, owner in owners.items())
    report.check_apart(layers, dict.fromkeys(RESERVED_TABLES, "is a table of every pipeline"))
