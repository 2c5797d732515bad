"""Compares the tables under a root with the current declaration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deltalake import Schema

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.digest import Meaning, meaning_of, table_digests
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.history.loads.reopening import changes_to_reopen, loads_into
from headgate.history.loads.requests import load_folder
from headgate.history.savepoints import rebuilds
from headgate.history.savepoints.declaration_changes import (
    DeployedTable,
    DeploymentAction,
    TablePlan,
    compare_declarations,
    late_again,
    nested_columns,
    only_adds,
    worst_action,
)
from headgate.history.savepoints.declarations import declaration_of, kept_declarations
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, Decisions
from headgate.lake.tables.engine import engine
from headgate.lake.tables.extending import extended
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class Deployment:
    """``engine`` has the versions that wrote the tables last; None if there are no tables.
    ``declaration`` is the digest of the declaration that all tables were made from, empty if it is
    not kept. ``loads`` are the loads of history to read again if bronze has to be read again."""

    tables: tuple[TablePlan, ...]
    engine: str | None
    declaration: str
    loads: tuple[LoadAgain, ...] = ()

    @property
    def action(self) -> DeploymentAction:
        return "new" if self.engine is None else worst_action(self.tables)

    @property
    def engine_changed(self) -> bool:
        return self.engine not in (None, "", engine())

    def to_rebuild(self) -> tuple[str, ...]:
        return tuple(p.table for p in self.tables if p.action in ("rebuild", "reread"))

    def to_change(self) -> tuple[str, ...]:
        """The tables to rebuild, and those that get fields and continue."""
        extended = (p.table for p in self.tables if p.action == "extend")
        return (*self.to_rebuild(), *extended)


def deployment_of(layout: Layout, pipeline: Pipeline) -> Deployment:
    """Read logs and kept declarations, and compare. If bronze changes, the source is queried too.

    Raises LogGapError if a log is damaged.
    """
    tables = {table.name: table for table in tables_of(layout, pipeline.name)}
    states = {
        path: t.refresh() for path, t in tables.items() if kind_of(path) in (BRONZE, SILVER, GOLD)
    }
    has_tables = any(kind_of(path) == BRONZE for path in states)
    decisions = ControlTable.of(layout.storage, pipeline.name).refresh()
    meanings = _meanings(layout)
    plans = _plans(pipeline, tables, meanings, can_reread=False)
    is_refused = has_tables and worst_action(plans) == "refuse"
    loads: tuple[LoadAgain, ...] = ()
    if is_refused:
        gone = _missing(layout, pipeline)
        if not gone:
            loads = tuple(loads_again(layout, pipeline, decisions))
            gone = [f"load {each.id}: {each.gone}" for each in loads if each.gone]
        plans = _plans(pipeline, tables, meanings, can_reread=not gone)
        plans = tuple(_refusing(plans, gone))
    if has_tables:
        plans = tuple(_under_way(pipeline, decisions, plans))
        plans = tuple(_with_rules(pipeline, states, plans))
        folded = [each.id for each in loads if each.folds]
        plans = tuple(_with_replays(pipeline, states, decisions, meanings, plans, folded))
    made_as = {path: table.refresh().definition for path, table in tables.items()}
    declaration = declaration_of(layout, pipeline, made_as) if has_tables else ""
    wrote = next((s.engine for path, s in states.items() if kind_of(path) == BRONZE), None)
    return Deployment(plans, wrote, declaration, loads)


def schemas_to_extend(
    layout: Layout, pipeline: Pipeline, tables: Mapping[str, Table]
) -> dict[str, Schema]:
    """The new schemas of the tables that are to be extended, by path, upstream tables first.
    ``tables`` are all tables of the pipeline, refreshed."""
    declared, meanings = meaning_of(pipeline), _meanings(layout)
    plans = _plans(pipeline, tables, meanings, can_reread=False)
    continued = {plan.table for plan in plans if plan.action in ("resume", "extend")}
    found = {}
    for path, of in ((node.path, node.side_of or node.path) for node in graph_of(pipeline)):
        if of not in continued or path not in tables:
            continue
        # Check each separately: after a restore or a crash, one may have the fields already.
        made_as = tables[path].state.definition
        before = meanings.get((path, made_as))
        has_all = made_as == pipeline.definitions.get(path)
        if before is not None and not has_all and only_adds(of, before, declared):
            found[path] = _extended(pipeline, tables[path])
    return {path: schema for path, schema in found.items() if schema is not None}


def _plans(
    pipeline: Pipeline,
    tables: Mapping[str, Table],
    meanings: Mapping[tuple[str, str], Meaning],
    *,
    can_reread: bool,
) -> tuple[TablePlan, ...]:
    deployed = {
        path: DeployedTable(table.state.definition, meanings.get((path, table.state.definition)))
        for path, table in tables.items()
        if kind_of(path) in (BRONZE, SILVER, GOLD)
    }
    return compare_declarations(
        meaning_of(pipeline),
        pipeline.definitions,
        deployed,
        can_reread=can_reread,
        can_extend=lambda path: _extended(pipeline, tables[path]) is not None,
    )


def _extended(pipeline: Pipeline, table: Table) -> Schema | None:
    return extended(table.handle.schema(), nested_columns(pipeline, table.name))


def _refusing(plans: Iterable[TablePlan], why: Iterable[str]) -> Iterator[TablePlan]:
    """The plans, with the reasons ``why`` added to those that are refused."""
    for plan in plans:
        is_refused = plan.action == "refuse"
        yield replace(plan, reasons=(*plan.reasons, *why)) if is_refused else plan


def _under_way(
    pipeline: Pipeline, decisions: Decisions, plans: Iterable[TablePlan]
) -> Iterator[TablePlan]:
    """The plans. Tables whose rebuild from the current declaration is under way get ``resume``."""
    rebuild = rebuilds.continued_rebuild(decisions, pipeline)
    for plan in plans:
        if rebuild is not None and plan.table in rebuild.tables:
            yield TablePlan(plan.table, "resume", ("it is being rebuilt",))
        else:
            yield plan


def _with_rules(
    pipeline: Pipeline, states: Mapping[str, State], plans: Iterable[TablePlan]
) -> Iterator[TablePlan]:
    """The plans, with a reason for each table that resumes with rules that have changed."""
    suites = {SILVER.path(name): table.suite_digest for name, table in pipeline.silver.items()}
    for plan in plans:
        state, suite = states.get(plan.table), suites.get(plan.table)
        if plan.action == "resume" and state and suite and state.n:
            before = SilverPayload.of(state).suite
            if before != suite:
                why = f"its rules have changed: the new ones decide from batch {state.n + 1:,} on"
                yield TablePlan(plan.table, "resume", (*plan.reasons, why))
                continue
        yield plan


def _with_replays(
    pipeline: Pipeline,
    states: Mapping[str, State],
    decisions: Decisions,
    meanings: Mapping[tuple[str, str], Meaning],
    plans: Sequence[TablePlan],
    folded: Collection[str],
) -> Iterator[TablePlan]:
    """The plans, with reasons for the replays that a rebuild of gold does not repeat exactly."""
    graph, declared = graph_of(pipeline), meaning_of(pipeline)
    reread = {plan.table for plan in plans if plan.action == "reread"}
    for plan in plans:
        if plan.action != "rebuild" or kind_of(plan.table) != GOLD:
            yield plan
            continue
        before = meanings.get((plan.table, states[plan.table].definition))
        name = name_of(plan.table)
        own = graph.numbered_by(plan.table)
        asked = decisions.operations_of(own.name)
        rereads = not reread.isdisjoint((own.path, *own.upstream))
        said = tuple(late_again(name, before, declared, asked, rereads=rereads, folded=folded))
        yield replace(plan, reasons=(*plan.reasons, *said), late_again=bool(said))


def _meanings(layout: Layout) -> dict[tuple[str, str], Meaning]:
    """The meanings of kept declarations, by the path and the digest of each of their tables."""
    found: dict[tuple[str, str], Meaning] = {}
    for meant in map(meaning_of, kept_declarations(layout)):
        found |= dict.fromkeys(table_digests(meant).items(), meant)
    return found


def _missing(layout: Layout, pipeline: Pipeline) -> list[str]:
    """What the sources no longer have of all that was read."""
    places = (
        DeployedSource(layout.storage, pipeline.name, each) for each in pipeline.sources.values()
    )
    found = (connector_of(place.source).missing(place) for place in places)
    return [why for why in found if why is not None]


@dataclass(frozen=True)
class LoadAgain:
    """``gone`` is a message about the part that can no longer be read; None if all can be read.
    ``folds``: its late rows are folded again, too, because it was not ended or held."""

    id: str
    what: str
    gone: str | None
    folds: bool


def loads_again(layout: Layout, pipeline: Pipeline, decisions: Decisions) -> Iterator[LoadAgain]:
    """Starts no JVM. Raises LogGapError if bronze's log is damaged."""
    tables = {BRONZE.path(name): source for name, source in pipeline.sources.items()}
    for request, load in loads_into(layout, pipeline.name, tables, decisions):
        if load is not None:
            source = tables[BRONZE.path(request.source)]
            place = DeployedSource(layout.storage, pipeline.name, source)
            plan = replace(request.plan, ends=load.offsets)
            gone = connector_of(source).gone_of_load(place, plan, load_folder(layout, request.id))
            until = changes_to_reopen(request, load).get("until", request.until)
            yield LoadAgain(request.id, request.plan.what, gone, folds=until is None)
