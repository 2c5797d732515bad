"""What a later attempt finds out about the requests of an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from headgate.declaration.graph import graph_of
from headgate.flow.operations.carrying_out import decide_operation
from headgate.flow.operations.late_replay import replay_document
from headgate.history.backfill.open_requests import has_open_request
from headgate.lake.control.requests import remove_request, send_request, waiting_requests
from headgate.lake.tables.arrow import stage_arrow
from tests.support.decisions import reset_to
from tests.unit.history.savepoints.conftest import NOW, here, lake
from tests.unit.insight.ledger.conftest import NOON, SCHEMAS, Lake

__all__ = ["lake"]  # a fixture

NOTE = "Airflow, run 1"
GOLD = "gold/per_minute"


def asked(lake: Lake, note: str = NOTE) -> None:
    send_request(
        lake.layout, "late_replay", replay_document("per_minute", by=f"me@here: {note}"), NOW
    )


def taken_in(lake: Lake) -> None:
    """Take in the requests, as bronze's job does."""
    for request in waiting_requests(lake.layout):
        place = here(lake), NOW, request.id
        graph = graph_of(lake.pipeline)
        decide_operation(lake.control, graph, request.kind, request.document, *place)
        remove_request(lake.layout, request)


def carried_out(lake: Lake, *, changes: bool = True) -> None:
    """Carry out the newest operation, as gold's stage does."""
    table, number = lake.table(GOLD), lake.control.refresh().last
    state = replace(table.refresh().held("operation", table.epoch), operation=number)
    rows: list[dict[str, Any]] = [{"time": NOON, "window_start": NOON, "events": 9}]
    content = pa.Table.from_pylist(rows, pa.schema(SCHEMAS[GOLD]))
    staged = stage_arrow(table, state, content, time_column="time") if changes else ()
    table.commit(state, add=tuple(replace(f, partition={"final": "true"}) for f in staged))


def test_what_was_asked_for_is_open_until_gold_has_it(lake: Lake) -> None:
    about = lake.layout, lake.pipeline, NOTE
    assert not has_open_request(*about)
    for step in (asked, taken_in):
        step(lake)
        assert has_open_request(*about)
    carried_out(lake)
    assert not has_open_request(*about)


@pytest.mark.parametrize("note", ["Airflow, run 11", "run 1", "Airflow, run"])
def test_another_run_has_not_asked_for_it(lake: Lake, note: str) -> None:
    about = lake.layout, lake.pipeline, note
    asked(lake)
    assert not has_open_request(*about)
    taken_in(lake)
    assert not has_open_request(*about)


def test_one_that_a_restore_has_left_out_of_force_is_not_open(lake: Lake) -> None:
    asked(lake)
    taken_in(lake)
    reset_to(lake.control, {}, NOW, void={"events": [1]})
    assert not has_open_request(lake.layout, lake.pipeline, NOTE)
