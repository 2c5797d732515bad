"""Final hours and days of gold start runs of downstream DAGs, while the stream continues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headgate.supervision.hours import between, of
from tests.support.airflow_site import GOLD, Site
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
BY_HOUR = "readings__per_minute_by_hour"
BY_DAY = """
from airflow.sdk import (
    DAG, DayWindow, PartitionedAssetTimetable, RollupMapper, StartOfDayMapper, task
)
from headgate.airflow import gold_asset

gold = gold_asset("readings", "per_minute")
days = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
schedule = PartitionedAssetTimetable(assets=gold, partition_mapper_config={gold: days})
with DAG("by_day", schedule=schedule, catchup=False):

    @task
    def which(day):
        return day

    which("{{ dag_run.partition_key }}")
"""


@in_full
def test_a_finished_hour_is_a_run_of_what_follows(site: Site) -> None:
    """The shipped example counts the rows of each hour once, while the stream continues."""
    airflow, driver = site.airflow, site.wait_for_owner()

    def told() -> set[str]:
        return {str(run["partition_key"]) for run in airflow.runs(BY_HOUR)}

    for dag in (GOLD, BY_HOUR):
        airflow.switch_on(dag)
    first = site.pass_by(1)
    wanted = set(between(None, first))
    airflow.wait(lambda: told() >= wanted, f"{first} is not told of: {airflow.runs(GOLD)}")
    before = told()
    last = site.pass_by(2)
    wanted = before | set(between(first, last))
    assert len(wanted) == len(before) + 2
    airflow.wait(lambda: told() == wanted, f"{last} is not told of")
    airflow.wait(
        lambda: {run["state"] for run in airflow.runs(BY_HOUR)} == {"success"}, "a run fails"
    )
    assert len(airflow.runs(BY_HOUR)) == len(wanted)
    gold = read(site.folder / "lake", "gold/per_minute")
    for run in airflow.runs(BY_HOUR):
        start, end = of(run["partition_key"])
        rows = [row for row in gold if start < row["window_end"] <= end]
        assert airflow.returned(BY_HOUR, run["dag_run_id"], "count_rows") == len(rows)
        assert all(row["final"] for row in rows)
    assert site.owner == driver


@in_full
def test_a_finished_day_is_a_run_of_what_follows(site: Site) -> None:
    """A day starts a run when all its hours have events, while the stream continues. The day on
    which the stream began never does, because its first hours have no events."""
    airflow = site.airflow
    airflow.ask("PATCH", f"/dags/{BY_HOUR}", {"is_paused": True})
    (site.folder / "dags/by_day.py").write_text(BY_DAY)
    airflow.switch_on("by_day")
    airflow.switch_on(GOLD)
    day = site.pass_by(36).replace(hour=0)
    site.pass_by(26)
    wanted = f"{day:%F}"

    def keys() -> dict[str, str]:
        return {run["partition_key"]: run["state"] for run in airflow.runs("by_day")}

    airflow.wait(lambda: keys().get(wanted) == "success", f"{wanted} did not run: {keys()}")
    (run,) = (run for run in airflow.runs("by_day") if run["partition_key"] == wanted)
    assert airflow.returned("by_day", run["dag_run_id"], "which") == wanted
    assert f"{day + timedelta(days=1):%F}" not in keys()
    (site.folder / "dags/by_day.py").unlink()
