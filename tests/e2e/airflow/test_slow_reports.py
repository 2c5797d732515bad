"""A report of events that is sent again while Airflow still works on it emits nothing twice."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg2
import pytest

from tests.support.airflow import running_airflow
from tests.support.lossy_proxy import lossy_proxy
from tests.support.postgres import is_there, running_postgres
from tests.support.rounds import in_full

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.recovery,
    pytest.mark.skipif(not is_there, reason="no PostgreSQL here"),
]
EMITS = """
from airflow.sdk import DAG, Asset, task

asset = Asset("tiny.gold.per_minute", "headgate://tiny/gold/per_minute")
with DAG("emits", schedule=None):

    @task(outlets=[asset])
    def emit(*, outlet_events):
        outlet_events[asset].add_partitions([f"2026-05-04T{hour:02}:00:00" for hour in range(24)])

    emit()
"""
WAITS = 5.0
"""How many seconds the client waits for an answer, by Airflow's default."""


@in_full
def test_a_report_that_is_sent_again_waits_for_the_first(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/emits.py").write_text(EMITS)
    with running_postgres() as address, lossy_proxy("set by Airflow") as proxy:
        database = address.replace("ql:", "ql+psycopg2:")
        places = tmp_path / "home", tmp_path / "dags", database
        with running_airflow(*places, proxy=proxy) as airflow:
            airflow.switch_on("emits")
            connection = psycopg2.connect(address)
            with connection.cursor() as cursor:
                cursor.execute("LOCK TABLE asset_event IN EXCLUSIVE MODE")  # none can be written
                run = airflow.trigger("emits")
                airflow.wait(lambda: proxy.seen(b"2026-05-04T00") >= 3, "it is not sent again")
                time.sleep(WAITS)
            connection.rollback()
            connection.close()
            airflow.wait(
                lambda: airflow.states("emits", run)["emit", -1] == "success",
                f"it fails: {airflow.said('emits', 'emit')}",
            )
            airflow.wait(lambda: not proxy.open, "requests are open")
            found = airflow.ask("GET", "/assets/events?limit=100")["asset_events"]
            keys = sorted(event["partition_key"] for event in found)
            assert keys == [f"2026-05-04T{hour:02}:00:00" for hour in range(24)]
