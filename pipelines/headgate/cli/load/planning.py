"""Plans what a load reads, and writes its request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from headgate.cli.driving import jars_for
from headgate.cli.options import command
from headgate.cli.person import person
from headgate.cli.screen import waiting
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline, Source
from headgate.errors import UsageError
from headgate.loads import requests
from headgate.loads.requests import LoadRequest
from headgate.sources.contract import DeployedSource, connector_of
from headgate.sources.loading import LoadWanted
from headgate.storage.documents import new_id
from headgate.storage.layout import Layout
from headgate.tables.table import Table

Chosen = tuple[str | None, tuple[str, ...], datetime | None, datetime | None]
"""Files, topics, and the range of times in which they were written: from, to."""


def planned(
    declared: Pipeline,
    layout: Layout,
    chosen: Chosen,
    source: str | None,
    note: str,
    paced: Mapping[str, Any],
) -> LoadRequest:
    """Write the request for a load. Raises UsageError or SourceError; then no request was
    written."""

    def session() -> AbstractContextManager[Any]:
        from headgate.jobs.session import passing_session

        return passing_session("headgate-load", 1, jars_for(declared))

    found = _source(declared, source)
    require_tables(declared, layout, found.name)
    now = datetime.now(UTC)
    id_ = new_id(now)
    place = DeployedSource(layout.storage, declared.name, found)
    folder = requests.folder_of(layout, id_)
    with waiting("looking at what there is to load"):
        plan = connector_of(found).plan_load(place, LoadWanted(*chosen), folder, session, now)
    request = requests.LoadRequest(id_, found.name, plan, person(note), now, **paced)
    requests.keep(layout, request)
    return request


def _source(declared: Pipeline, name: str | None) -> Source:
    """Raises UsageError if the option names no source, or one must be named."""
    found = [each for key, each in declared.sources.items() if name in (None, key)]
    if len(found) != 1:
        which = "it has several sources" if found else f"it has no source {name!r}"
        names = ", ".join(declared.sources)
        raise UsageError(f"{declared.name}: {which}", remedy=f"--source is one of: {names}")
    return found[0]


def require_tables(declared: Pipeline, layout: Layout, source: str) -> None:
    """Raises UsageError if there are no tables, or a late table cannot mark what is replayed: the
    load could not be carried out to its end."""
    from headgate.loads.replay_planner import ReplayPlanner

    if not Table(layout.storage, BRONZE.path(source), pipeline=declared.name).exists:
        raise UsageError(
            f"{declared.name} has no tables yet: history is loaded beside a stream that has begun",
            remedy=command("run", "--once"),
        )
    ReplayPlanner(layout, declared, source).require_marks()
