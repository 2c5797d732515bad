"""Tables that are no longer declared.

They keep their rows. Their upstream table continues without them and may be reset or rebuilt. Then
the batches that they have processed are no longer those of the upstream table, and they must not
continue from their position when they are declared again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from headgate.declaration.kinds import BRONZE, GOLD, LATE, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.resets import Target, is_built
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table


def undeclared(layout: Layout, pipeline: Pipeline) -> tuple[Table, ...]:
    """The existing undeclared tables of a pipeline that were built from bronze."""
    declared = pipeline.definitions
    found = tables_of(layout, pipeline.name)
    return tuple(t for t in found if is_built(t.name) and t.name not in declared)


def undeclared_targets(undeclared: Iterable[str], reset: Collection[str]) -> dict[str, Target]:
    """The targets of undeclared tables downstream of the tables in ``reset``: they lose their
    definitions, so that they are rebuilt if they are declared again. All are paths."""
    kinds = {kind_of(path) for path in reset}
    if BRONZE in kinds:
        return {path: Target(keep=True) for path in undeclared}
    if SILVER not in kinds:
        return {}
    below = (path for path in undeclared if kind_of(path) in (GOLD, LATE))
    return {path: Target(keep=True) for path in below}
