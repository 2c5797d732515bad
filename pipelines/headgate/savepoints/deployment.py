"""Compares the tables under a root with the current declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headgate.declaration.digest import GOLD_LAYOUT, Meaning, meaning_of, table_digests
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.savepoints import rebuilds
from headgate.savepoints.compatibility import Deployed, DeploymentAction, TablePlan, compare, worst
from headgate.savepoints.declarations import all_kept, declaration_of
from headgate.sources.contract import DeployedSource, connector_of
from headgate.storage.layout import Layout
from headgate.tables.engine import engine
from headgate.tables.payloads.silver import SilverPayload
from headgate.tables.snapshot import tables_of
from headgate.tables.state import State


@dataclass(frozen=True)
class Deployment:
    """``engine`` has the versions that wrote the tables last; None if there are no tables.
    ``declaration`` is the digest of the declaration that all tables were made from, empty if it is
    not kept."""

    tables: tuple[TablePlan, ...]
    engine: str | None
    declaration: str

    @property
    def verdict(self) -> DeploymentAction:
        return "new" if self.engine is None else worst(self.tables)

    @property
    def engine_changed(self) -> bool:
        return self.engine not in (None, "", engine())

    def to_rebuild(self) -> tuple[str, ...]:
        return tuple(p.table for p in self.tables if p.verdict in ("rebuild", "reread"))


def deployment(layout: Layout, pipeline: Pipeline) -> Deployment:
    """Read logs and kept declarations, and compare. If bronze changes, the source is queried too.

    Raises LogGapError if a log is damaged.
    """
    kept = {p.digest: p for p in all_kept(layout)}
    by_table = _by_table(kept)
    tables = {table.name: table for table in tables_of(layout, pipeline.name)}
    states = {
        path: t.refresh() for path, t in tables.items() if kind_of(path) in (BRONZE, SILVER, GOLD)
    }
    deployed = {
        path: Deployed(state.definition, by_table.get((path, state.definition)))
        for path, state in states.items()
    }
    bronze = states.get(graph_of(pipeline).head.path)
    changed = bronze is not None and bronze.definition != pipeline.definitions[_bronze(pipeline)]
    plans = compare(
        meaning_of(pipeline),
        pipeline.definitions,
        deployed,
        can_reread=changed and _holds_everything(layout, pipeline),
    )
    if bronze is not None:
        plans = tuple(_under_way(layout, pipeline, bronze, plans))
        plans = tuple(_with_rules(pipeline, states, plans))
    made_as = {path: table.refresh().definition for path, table in tables.items()}
    declaration = declaration_of(layout, pipeline, made_as) if bronze else ""
    wrote = next((s.engine for path, s in states.items() if kind_of(path) == BRONZE), None)
    return Deployment(plans, wrote, declaration)


def _under_way(
    layout: Layout, pipeline: Pipeline, bronze: State, plans: Iterable[TablePlan]
) -> Iterator[TablePlan]:
    """The plans. Tables whose rebuild from the current declaration is under way get ``resume``."""
    rebuild = rebuilds.continued(layout, pipeline, bronze.generation)
    for plan in plans:
        if rebuild is not None and plan.table in rebuild.tables:
            yield TablePlan(plan.table, "resume", ("it is being rebuilt",))
        else:
            yield plan


def _with_rules(
    pipeline: Pipeline, states: Mapping[str, State], plans: Iterable[TablePlan]
) -> Iterator[TablePlan]:
    """The plans. A table that resumes by other rules than those of its last batch says so."""
    suites = {SILVER.path(name): table.suite_digest for name, table in pipeline.silver.items()}
    for plan in plans:
        state, suite = states.get(plan.table), suites.get(plan.table)
        if plan.verdict == "resume" and state and suite and state.n:
            before = SilverPayload.of(state).suite
            if before != suite:
                why = f"its rules have changed: the new ones decide from batch {state.n + 1:,} on"
                yield TablePlan(plan.table, "resume", (*plan.reasons, why))
                continue
        yield plan


def _bronze(pipeline: Pipeline) -> str:
    return graph_of(pipeline).head.path


def _by_table(kept: Mapping[str, Pipeline]) -> dict[tuple[str, str], Meaning]:
    found: dict[tuple[str, str], Meaning] = {}
    for meant in map(meaning_of, kept.values()):
        for layout in range(1, GOLD_LAYOUT + 1):
            made = {**meant, "layout": layout}
            found |= dict.fromkeys(table_digests(meant, layout).items(), made)
    return found


def _holds_everything(layout: Layout, pipeline: Pipeline) -> bool:
    places = (
        DeployedSource(layout.storage, pipeline.name, each) for each in pipeline.sources.values()
    )
    return all(connector_of(place.source).holds_all(place) for place in places)
