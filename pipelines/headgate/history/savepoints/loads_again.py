"""The loads of history that are read again if bronze is read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.history.loads.reopening import changes_to_reopen, loads_into
from headgate.history.loads.requests import load_folder
from headgate.lake.storage.layout import Layout


@dataclass(frozen=True)
class LoadAgain:
    """``gone`` is a message about the part that can no longer be read; None if all can be read.
    ``folds``: its late rows are folded again, too, because it was not ended or held."""

    id: str
    what: str
    gone: str | None
    folds: bool


def loads_again(layout: Layout, pipeline: Pipeline) -> Iterator[LoadAgain]:
    """Starts no JVM. Raises LogGapError if bronze's log is damaged."""
    tables = {BRONZE.path(name): source for name, source in pipeline.sources.items()}
    for request, load in loads_into(layout, pipeline.name, tables):
        if load is not None:
            source = tables[BRONZE.path(request.source)]
            place = DeployedSource(layout.storage, pipeline.name, source)
            plan = replace(request.plan, ends=load.offsets)
            gone = connector_of(source).gone_of_load(place, plan, load_folder(layout, request.id))
            until = changes_to_reopen(request, load).get("until", request.until)
            yield LoadAgain(request.id, request.plan.what, gone, folds=until is None)
