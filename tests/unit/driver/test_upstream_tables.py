"""The input of silver's and gold's jobs: each upstream table has batch ids of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from headgate.driver.job_input import UpstreamTables


def upstream(**tables: int) -> tuple[UpstreamTables, dict[str, Any]]:
    made: dict[str, Any] = {}
    for name, n in tables.items():
        made[name] = state = SimpleNamespace(n=n)
        state.name, state.refresh = name, lambda state=state: state
    by_source = {"orders": ["silver_a", "silver_b"], "clicks": ["silver_c"], "unused": []}
    return UpstreamTables(cast(Any, tuple(made.values())), by_source), made


def behind(tables: UpstreamTables) -> dict[str, int]:
    return {
        name: report.backlog.count
        for name, report in tables.reports().items()
        if report.backlog is not None
    }


def test_a_job_wakes_when_any_upstream_table_has_a_batch() -> None:
    tables, at = upstream(silver_a=0, silver_b=0, silver_c=0)
    tables.poll(final=False)
    assert tables.pending() == 0
    at["silver_c"].n = 2
    tables.poll(final=False)
    assert (tables.pending(), tables.has_ingested_all()) == (1, False)
    assert behind(tables) == {"orders": 0, "clicks": 2, "unused": 0}
    at["silver_a"].n = 9
    assert tables.ingest()
    assert tables.pending() == 0
    tables.poll(final=False)
    assert (tables.pending(), behind(tables)["orders"]) == (1, 9)


def test_a_table_that_a_reset_has_set_back_is_followed() -> None:
    tables, at = upstream(silver_a=5, silver_b=5, silver_c=5)
    tables.poll(final=False)
    tables.ingest()
    at["silver_a"].n = 3
    tables.poll(final=False)
    assert (tables.pending(), behind(tables)) == (1, {"orders": 0, "clicks": 0, "unused": 0})
