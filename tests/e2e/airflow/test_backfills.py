"""Airflow's own backfill over days of gold, on PostgreSQL, while the stream runs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from headgate.declaration.load import load
from headgate.history.backfill.report import backfill_reports
from headgate.history.savepoints.store import find_savepoint
from headgate.insight.final_periods.periods import HOUR
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from tests.support.airflow import running_airflow
from tests.support.airflow_site import GOLD, STREAM, Site
from tests.support.drivers import REPOSITORY
from tests.support.events import reading
from tests.support.postgres import is_there, running_postgres
from tests.support.readings import declare_few
from tests.support.rounds import in_full
from tests.support.tables import Row, read

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.recovery,
    pytest.mark.skipif(not is_there, reason="no PostgreSQL here"),
]
SHIPPED = REPOSITORY / "pipelines/headgate/setup/templates/shop/dags"
BACKFILL = "readings__backfill"
FIRST = datetime(2026, 2, 1, tzinfo=UTC)
DAYS = 28
LONG = 1800.0  # seconds: each day starts its own Spark
REBUILD = "{every: 1 day, mode: rebuild, publish: after_approval}"
DOUBLED = "      level_total: sum(level * 2)\n"
OF_THE_VERB = ("held", "silver_made", "compared", "reported", "asked")
OF_THE_DRIVER = ("operation.intended", "operation.staged", "operation.table_done")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A stream that has processed a month of events."""
    folder = tmp_path_factory.mktemp("backfills")
    (folder / "landing").mkdir()
    (folder / "kills").mkdir()
    declared = declare_few(folder / "pipelines", folder / "landing")
    with declared.file.open("a") as file:
        file.write(f"airflow: {{backfill: {REBUILD}}}\n")
    shutil.copytree(SHIPPED, folder / "dags")
    with ExitStack() as ends:
        ends.callback(local.kill, Layout.of(str(folder / "lake"), declared.name))
        database = ends.enter_context(running_postgres()).replace("ql:", "ql+psycopg2:")
        places = folder / "home", folder / "dags", database, folder / "kills"
        airflow = ends.enter_context(running_airflow(*places))
        place = Site(folder, airflow, load(declared.file))
        for day in range(DAYS + 1):
            start = FIRST + timedelta(days=day)
            events = (
                reading(f"d{day}-{n}", start + timedelta(minutes=20 * n), site="a", level=n)
                for n in range(72)
            )
            place.deliver(*events, arrived=start + timedelta(days=1))
        airflow.switch_on(STREAM)
        place.wait_for_owner()
        end = FIRST + timedelta(days=DAYS)
        airflow.wait(lambda: (at := place.final()) and at >= end, "the days are not final")
        airflow.switch_on(GOLD)
        airflow.wait(lambda: emitted(place), "the last hour is not emitted")
        yield place


def runs(site: Site, state: str | None = None) -> list[str]:
    """The runs of Airflow's backfills. The schedule's own run waits for a day that is not over."""
    return [run["dag_run_id"] for run in listed(site) if state in (None, run["state"])]


def listed(site: Site) -> list[dict[str, Any]]:
    found = site.airflow.ask("GET", f"/dags/{BACKFILL}/dagRuns?run_type=backfill&limit=100")
    dag_runs: list[dict[str, Any]] = found["dag_runs"]
    return dag_runs


def backfills(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.airflow.ask("GET", f"/backfills?dag_id={BACKFILL}")[
        "backfills"
    ]
    return found


def create(site: Site, first: datetime, last: datetime, *more: str) -> None:
    """Create a backfill as a person does, with a run for each day from the first to the last, when
    the previous backfill is over."""
    site.airflow.wait(lambda: all(each["completed_at"] for each in backfills(site)), "one runs")
    days = ("--from-date", f"{first:%F}", "--to-date", f"{last:%F}", "--max-active-runs", "4")
    site.airflow.cli("backfill", "create", "--dag-id", BACKFILL, *days, *more)


@in_full
def test_a_month_of_days_is_computed_again_and_is_equal(site: Site) -> None:
    """The scheduler and the process of a day are killed in the middle. A second backfill has
    nothing to do: no day is missing, and none has failed."""
    airflow, driver = site.airflow, site.wait_for_owner()
    airflow.switch_on(BACKFILL)
    last = FIRST + timedelta(days=DAYS - 1)
    create(site, FIRST, last)
    airflow.wait(lambda: runs(site, "success"), "no day is done")
    airflow.kill("scheduler")
    airflow.start("scheduler")
    airflow.wait(lambda: computing(site), "no day is computed")
    for process in computing(site):
        process.kill()
    airflow.wait(
        lambda: len(runs(site, "success")) == DAYS or runs(site, "failed"),
        f"not all days are done: {airflow.runs(BACKFILL)}",
        patience=LONG,
    )
    assert len(runs(site)) == len(runs(site, "success")) == DAYS
    found = {report.begin: report for report in backfill_reports(site.layout)}
    assert {*found} == {FIRST + timedelta(days=day) for day in range(DAYS)}
    assert {report.result for report in found.values()} == {"equal"}
    assert all(each.windows for report in found.values() for each in report.tables)
    create(site, FIRST, last, "--reprocess-behavior", "failed")
    assert len(runs(site)) == DAYS
    assert site.owner == driver
    assert by_id(site.layout, site.declared).findings == ()


@in_full
def test_another_formula_is_published_once_a_person_has_approved(site: Site) -> None:
    """A run of one day is requested with another declaration, and computed again after a change of
    it. The hours of the day are emitted again."""
    airflow = site.airflow
    airflow.switch_on(BACKFILL)
    other = site.declared.file.with_name("other.txt")
    tripled = DOUBLED.replace("2", "3")
    other.write_text(site.declared.text.replace("      level_total: sum(level)\n", tripled))
    before, told = gold(site), emitted(site)
    day = FIRST + timedelta(days=1)
    create(
        *(site, day, day, "--reprocess-behavior", "completed"),
        *("--dag-run-conf", json.dumps({"declaration": other.name})),
    )
    (run,) = (each for each in listed(site) if each["conf"])
    run = run["dag_run_id"]

    airflow.wait(lambda: airflow.asks(BACKFILL, run), "nobody is asked", LONG)
    asked = airflow.question(BACKFILL, run)
    assert f"after {day.isoformat()}" in asked
    assert "**another declaration**, `other.txt`" in asked
    assert "| `a` | changed | `level_total` | 1 | 3 |" in asked
    other.write_text(site.declared.text.replace("      level_total: sum(level)\n", DOUBLED))
    airflow.clear(BACKFILL, "compute", run)
    airflow.wait(lambda: airflow.asks(BACKFILL, run, 1), "nobody is asked again", LONG)
    assert "| `a` | changed | `level_total` | 1 | 2 |" in airflow.question(BACKFILL, run, 1)
    # A form with the earlier rows may be open.
    airflow.answer(BACKFILL, run, 0)
    airflow.wait(
        lambda: airflow.states(BACKFILL, run)["approve", 0] == "skipped", "an old answer counts"
    )
    assert gold(site) == before

    def is_published() -> bool:
        airflow.approve_if_asked(BACKFILL, run, 1)
        return run in runs(site, "success")

    airflow.wait(is_published, "it is not published", LONG)
    after = gold(site)
    for place, row in after.items():
        is_meant = day <= place[0] < day + timedelta(days=1)
        was = before[place]["level_total"]
        assert row["level_total"] == (2 * was if is_meant else was)
        assert row["revision"] == (row["level_total"] != was)
    emits_again(site, told, day)
    newest = next(report for report in backfill_reports(site.layout) if report.published)
    assert newest.published is not None
    savepoint = find_savepoint(site.layout, newest.published.savepoint)
    assert "before backfill" in savepoint.note


@in_full
def test_late_rows_of_a_day_are_folded(site: Site) -> None:
    """The driver is killed at every failpoint of the operation that folds them."""
    airflow = site.airflow
    redeclare(site, "{every: 1 day, mode: late}")
    day, before, told = FIRST + timedelta(days=2), gold(site), emitted(site)
    events = [
        reading(f"late-{hour}", day + timedelta(hours=hour), site="a", level=hour)
        for hour in range(24)
    ]
    site.deliver(*events, arrived=FIRST + timedelta(days=DAYS + 1))
    airflow.wait(lambda: len(late(site)) == len(events), "they are not late")
    airflow.wait(lambda: "replay" in tasks(site), f"it is not the new DAG: {tasks(site)}")
    kill_at(site, *OF_THE_DRIVER)
    create(site, day, day, "--reprocess-behavior", "completed")
    (run,) = (id_ for id_ in runs(site) if id_ not in runs(site, "success"))
    airflow.wait(lambda: run in runs(site, "success"), "its late rows are not folded", LONG)
    assert not left(site)
    assert airflow.states(BACKFILL, run)["compute", -1] == "success"
    changed = {place for place, row in gold(site).items() if row != before[place]}
    assert changed == {(day + timedelta(hours=hour), "a") for hour in range(24)}
    emits_again(site, told, day)
    assert by_id(site.layout, site.declared).findings == ()


@in_full
def test_a_backfill_that_is_killed_at_every_named_place_is_published_once(site: Site) -> None:
    airflow = site.airflow
    redeclare(site, "{every: 1 day, mode: rebuild, publish: always}")
    airflow.wait(
        lambda: not {"replay", "approve"} & tasks(site), f"it is not the new DAG: {tasks(site)}"
    )
    other = site.declared.file.with_name("other.txt")
    other.write_text(site.declared.text.replace("      level_total: sum(level)\n", DOUBLED))
    day, before, told = FIRST + timedelta(days=3), gold(site), emitted(site)
    kill_at(site, *(f"backfill.{place}" for place in OF_THE_VERB), *OF_THE_DRIVER)
    create(
        *(site, day, day, "--reprocess-behavior", "completed"),
        *("--dag-run-conf", json.dumps({"declaration": other.name})),
    )
    (run,) = (id_ for id_ in runs(site) if id_ not in runs(site, "success"))
    airflow.wait(lambda: run in runs(site, "success"), "it is not published", LONG)
    assert not left(site)
    for place, row in gold(site).items():
        was = before[place]
        is_meant = day <= place[0] < day + timedelta(days=1)
        assert row["level_total"] == was["level_total"] * (2 if is_meant else 1)
        assert row["revision"] == was["revision"] + (row["level_total"] != was["level_total"])
    emits_again(site, told, day)
    assert by_id(site.layout, site.declared).findings == ()


def redeclare(site: Site, backfill: str) -> None:
    file = site.declared.file
    text = re.sub(r"backfill: \{[^}]*\}", f"backfill: {backfill}", file.read_text())
    file.write_text(text)


def kill_at(site: Site, *places: str) -> None:
    """From now on, each failpoint kills the first process that passes it."""
    for place in places:
        (site.folder / "kills" / place).touch()


def left(site: Site) -> list[str]:
    """The failpoints that no process has passed."""
    return [path.name for path in (site.folder / "kills").iterdir()]


def computing(site: Site) -> list[psutil.Process]:
    """The processes that compute a day now."""
    words = {"backfill", str(site.declared.file)}
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if words <= {*(process.info["cmdline"] or ())}]


def emitted(site: Site) -> list[str]:
    """The hours for which asset events were emitted, the newest event first."""
    asked = f"/assets/events?source_dag_id={GOLD}&source_task_id=per_minute&limit=100"
    found = site.airflow.ask("GET", f"{asked}&order_by=-timestamp")["asset_events"]
    return [event["partition_key"] for event in found]


def emits_again(site: Site, before: list[str], day: datetime) -> None:
    """Wait until the hours of a day are emitted again, and check that they are emitted once."""
    hours = [HOUR.key(day + timedelta(hours=hour)) for hour in range(24)]
    site.airflow.wait(
        lambda: len(emitted(site)) >= len(before) + 24, f"only {emitted(site)} are emitted"
    )
    assert sorted(emitted(site)[: -len(before)]) == hours


def tasks(site: Site) -> set[str]:
    return {task["task_id"] for task in site.airflow.ask("GET", f"/dags/{BACKFILL}/tasks")["tasks"]}


def late(site: Site) -> list[Row]:
    return read(site.folder / "lake", "late/per_minute")


def gold(site: Site) -> dict[tuple[datetime, str], Row]:
    rows = read(site.folder / "lake", "gold/per_minute")
    return {(row["window_start"], row["site"]): row for row in rows if row["final"]}
