"""Loads of history in the control tables of tests, as bronze's job decides on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.history.loads.requests import LoadRequest, all_loads, decide_load, decide_load_change
from headgate.lake.control.requests import Request, remove_request, waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import LOAD
from tests.support.decisions import control_of


def begin_load(layout: Layout, pipeline: str, load: LoadRequest) -> LoadRequest:
    """Decide that a load begins, and that it is ``wish``."""
    control = control_of(layout.storage, pipeline)
    decide_load(control, Request(load.id, LOAD, load.document(), load.at), {}, load.at)
    if load.wish != "open":
        change_load(layout, pipeline, load, wish=load.wish, why=load.why)
    return replace(load, number=1)


def take_in_loads(layout: Layout, pipeline: str) -> None:
    """Decide that the requested loads begin."""
    control = control_of(layout.storage, pipeline)
    for request in waiting_requests(layout):
        decide_load(control, request, {}, request.at)
        remove_request(layout, request)


def change_load(layout: Layout, pipeline: str, load: LoadRequest, **changes: Any) -> None:
    """Decide on a change of a load."""
    control = control_of(layout.storage, pipeline)
    decide_load_change(control, load.id, changes, {}, load.at)


def wishes(layout: Layout, pipeline: str) -> dict[str, str]:
    """What is wanted for each load, by its id."""
    return {load.id: load.wish for load in all_loads(layout, pipeline)}
