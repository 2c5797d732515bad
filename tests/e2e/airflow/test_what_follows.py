"""Final hours and days of gold start runs of downstream DAGs, while the stream continues. A run
follows every change of final rows, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from headgate.history.savepoints.store import savepoints
from headgate.insight.final_periods.periods import DAY, HOUR, Period
from tests.support.airflow_site import CONTROL, GOLD, Site
from tests.support.events import reading
from tests.support.readings import NOON
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
BY_HOUR = "readings__per_minute_by_hour"
FOLLOWS = """
import json
from pathlib import Path

from airflow.sdk import DAG, PartitionedAssetTimetable, task
from headgate.airflow import gold_tables

(gold,) = gold_tables("pipelines")


def follows(name, asset, times):
    with DAG(name, schedule=PartitionedAssetTimetable(assets=asset), catchup=False) as dag:

        @task
        def report(key):
            from deltalake import DeltaTable

            start, end = times(key)
            filters = [("window_end", ">", start), ("window_end", "<=", end), ("final", "=", True)]
            rows = DeltaTable(gold.uri).to_pyarrow_table(filters=filters).to_pylist()
            kept = [[str(row["window_start"]), str(row["site"]), row["events"]] for row in rows]
            with Path(__file__).with_name(f"{name}.jsonl").open("a") as reports:
                reports.write(json.dumps([key, sorted(kept)]) + "\\n")

        report("{{ dag_run.partition_key }}")
    return dag


hours = follows("hours", gold.asset, gold.hour)
days = follows("days", gold.days, gold.day)
"""
PERIODS = {"hours": HOUR, "days": DAY}
Reports = list[tuple[str, list[list[Any]]]]


def reports(site: Site, dag: str) -> Reports:
    """What the runs of a DAG have read, the oldest run first."""
    file = site.folder / "dags" / f"{dag}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(key, rows) for key, rows in map(json.loads, lines)]


def gold(site: Site, period: Period) -> Mapping[str, list[list[Any]]]:
    """The final rows of gold, by the key of the period in which their windows end."""
    found: dict[str, list[list[Any]]] = {}
    for row in read(site.folder / "lake", "gold/per_minute"):
        if row["final"]:
            key = period.key(period.start(row["window_end"]))
            kept = [str(row["window_start"]), str(row["site"]), row["events"]]
            found.setdefault(key, []).append(kept)
    return {key: sorted(rows) for key, rows in found.items()}


def follow(site: Site) -> dict[str, set[str]]:
    """Switch on what follows gold, and wait for the first report of each. Returns the keys that had
    rows before: only the last one was reported."""
    (site.folder / "dags/follows.py").write_text(FOLLOWS)
    site.pass_by(30)
    for dag in ("hours", "days", GOLD):
        site.airflow.switch_on(dag)
    site.airflow.wait(lambda: all(reports(site, dag) for dag in PERIODS), "nothing is reported")
    first = {dag: reports(site, dag)[0][0] for dag in PERIODS}
    return {dag: {key for key in gold(site, PERIODS[dag]) if key < first[dag]} for dag in PERIODS}


def check(site: Site, earlier: Mapping[str, set[str]]) -> dict[str, int]:
    """Wait until the last report of each period has the rows of gold. No report of a period repeats
    the one before. Returns the number of reports."""

    def differing() -> list[str]:
        final, found = site.final(), []
        assert final is not None
        for dag, period in PERIODS.items():
            last = {key: sorted(rows) for key, rows in reports(site, dag)}
            end, now = period.key(period.whole(final)), gold(site, period)
            wanted = {k: rows for k, rows in now.items() if k < end}
            found += [
                f"{dag} {key}"
                for key in wanted.keys() | last.keys()
                if last.get(key, []) != wanted.get(key, [])
                and (key in last or key not in earlier[dag])
            ]
        return found

    site.airflow.wait(lambda: not differing(), f"not as gold: {differing()}", 300)
    for dag in PERIODS:
        before: dict[str, list[list[Any]]] = {}
        for key, rows in reports(site, dag):
            assert before.get(key) != rows, f"{dag}: {key} was reported twice"
            before[key] = rows
    return {dag: len(reports(site, dag)) for dag in PERIODS}


def is_report(body: bytes) -> bool:
    """Whether a request reports asset events."""
    return b'"partition_key":"2' in body.replace(b" ", b"")


def late(site: Site, *times: datetime) -> None:
    """Deliver events that are late, and have them replayed from Airflow."""

    def rows() -> int:
        return len(read(site.folder / "lake", "late/per_minute"))

    def events() -> int:
        found = read(site.folder / "lake", "gold/per_minute")
        return sum(row["events"] for row in found if row["final"])

    sent = [reading(f"late-{time:%F-%T}", time, site="North", value=1) for time in times]
    before, already = events(), rows()
    site.deliver(*sent, arrived=site.final() or NOON)
    site.airflow.wait(lambda: rows() == already + len(times), "they are not late")
    site.airflow.trigger(CONTROL, action="replay late rows", table="gold.per_minute")
    site.airflow.wait(lambda: events() >= before + len(times), "they are not replayed")


def test_each_change_of_final_rows_is_one_run_of_what_follows(site: Site) -> None:
    """A jump of the watermark, late rows, and an answer of Airflow that is lost."""
    airflow, driver = site.airflow, site.wait_for_owner()
    earlier = follow(site)
    assert airflow.proxy is not None
    airflow.proxy.lose(is_report, times=3)
    before = site.final()
    assert before is not None
    site.pass_by(5000)
    site.pass_by(2)
    reported = check(site, earlier)
    assert len(airflow.proxy.lost) == 3
    late(site, before + timedelta(hours=1), before + timedelta(days=100))
    again = check(site, earlier)
    # The site may have had other late rows, which are replayed, too.
    assert again["hours"] >= reported["hours"] + 2
    assert again["days"] >= reported["days"] + 2
    assert again["hours"] < 20, "empty hours are not reported"
    assert site.owner == driver


@in_full
def test_a_restore_and_a_backfill_are_followed(site: Site) -> None:
    earlier = follow(site)
    check(site, earlier)
    airflow, start = site.airflow, site.final()
    assert start is not None
    airflow.trigger(CONTROL, action="savepoint")
    airflow.wait(lambda: savepoints(site.layout), "no savepoint")
    (savepoint, *_) = savepoints(site.layout)
    site.pass_by(3)
    late(site, start - timedelta(hours=2))
    check(site, earlier)
    other = site.declared.file.with_name("other.txt")
    text = site.declared.text.replace("events: count(*)", "events: count(*) filter (where ok)", 1)
    other.write_text(text)
    begin = (start - timedelta(days=2)).isoformat()
    asked = ("--from", begin, "--declaration", str(other), "--publish", "--root", site.layout_root)
    command = [sys.executable, "-m", "headgate.cli", "backfill", str(site.declared.file), *asked]
    subprocess.run(command, check=True, timeout=300)
    before = check(site, earlier)
    driver = site.wait_for_owner()
    airflow.trigger(CONTROL, action="start from savepoint", savepoint=savepoint.id)
    site.wait_for_owner(other_than=driver)
    airflow.wait(lambda: (site.final() or start) > start, "the stream has not read on")
    after = check(site, earlier)
    assert after["hours"] > before["hours"], "the restore takes the backfill back"


@in_full
def test_the_shipped_example_counts_the_rows_of_each_hour(site: Site) -> None:
    airflow = site.airflow
    for dag in (GOLD, BY_HOUR):
        airflow.switch_on(dag)
    end = site.pass_by(1)
    site.pass_by(2)
    key = HOUR.key(end)
    airflow.wait(
        lambda: key in [run["partition_key"] for run in airflow.runs(BY_HOUR)],
        f"{key} did not run: {airflow.runs(BY_HOUR)}",
    )
    (run,) = (run for run in airflow.runs(BY_HOUR) if run["partition_key"] == key)
    airflow.wait(
        lambda: airflow.states(BY_HOUR, run["dag_run_id"])["count_rows", -1] == "success",
        "it fails",
    )
    rows = airflow.returned(BY_HOUR, run["dag_run_id"], "count_rows")
    assert rows == len(gold(site, HOUR)[key]) == 1
