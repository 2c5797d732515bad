"""Lineage events as a receiver gets them over HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.insight.lineage import emitting
from headgate.insight.lineage.emitting import lineage_sent, send_backfill
from headgate.insight.lineage.hours import sent_up_to
from tests.support.backfilled import backfill
from tests.support.engine import Engine
from tests.support.events import reading
from tests.support.landing import Landing, split
from tests.support.readings import NOON, declare
from tests.support.receiver import Receiver, receiving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

PATIENCE = 30.0
HOURS = 3
Event = dict[str, Any]


def events(receiver: Receiver) -> list[Event]:
    return [json.loads(request.body) for request in receiver.took]


def of(receiver: Receiver, job: str) -> list[Event]:
    """The events in which a job has completed."""
    found = events(receiver)
    return [e for e in found if (e["job"]["name"], e["eventType"]) == (job, "COMPLETE")]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    from openlineage.client.transport import http_common

    # The client tries for nine seconds. If OPENLINEAGE_URL is set, no variable can shorten this.
    monkeypatch.setitem(http_common.DEFAULT_RETRY_CONFIG, "total", 0)
    monkeypatch.setattr(emitting, "LOOK_EVERY", 0.1)
    monkeypatch.setattr(emitting, "TRY_AGAIN", 0.1)
    monkeypatch.setattr(emitting, "ENDS_WITHIN", 60.0)
    with receiving() as receiver:
        monkeypatch.setenv("OPENLINEAGE_URL", receiver.url)
        yield receiver


RULES = """
expectations:
  - {id: known, expect: expect_column_values_to_be_in_set, column: site, value_set: [north]}
  - {id: low, expect: level < 100}
"""


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """Three hours and more with a row every ten minutes, and one that breaks a rule."""
    landing = Landing(tmp_path / "landing")
    rows = [
        reading(f"r-{n}", NOON + timedelta(minutes=10 * n), site="north", level=7, value=n + 1)
        for n in range(6 * HOURS + 6)
    ]
    rows.insert(3, reading("bad", NOON + timedelta(minutes=20), site="nowhere", value=1))
    landing.write_all(split(rows, 1))
    declared = declare(tmp_path, landing.folder, gold=("bands",))
    text = declared.text.replace("  clean:\n", "  clean:\n    expectations: clean\n")
    text = text.replace("future_after: 1 hour", "future_after: 1 day")
    declared.file.write_text(text)
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "clean.yml").write_text(RULES)
    return Engine(spark, load(declared.file), tmp_path / "root")


def test_an_hour_is_sent_once_it_is_final(receiver: Receiver, engine: Engine) -> None:
    said: list[str] = []
    receiver.answer = lambda _: 503
    with lineage_sent(engine.pipeline, engine.layout, said.append):
        engine.run_all()
        wait_until(lambda: said, "nobody says that the receiver is ill", PATIENCE)
        assert sent_up_to(engine.layout) == {}
        receiver.answer = lambda _: 200
        wait_until(lambda: sent_up_to(engine.layout), "it is not tried again", PATIENCE)
    assert len(said) == 1
    assert receiver.url not in said[0]
    (whole,) = of(receiver, "readings")
    (gold,) = of(receiver, "readings.gold.bands")
    (end,) = sent_up_to(engine.layout).values()
    assert end is not None
    begin = end - timedelta(hours=1)
    nominal = gold["run"]["facets"]["nominalTime"]
    assert (nominal["nominalStartTime"], nominal["nominalEndTime"]) == (
        begin.isoformat(),
        end.isoformat(),
    )
    parent = gold["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == whole["run"]["runId"]
    assert parent["job"]["name"] == "readings"

    root = engine.root / "readings"
    assert [each["name"] for each in gold["inputs"]] == [f"{root}/silver/clean"]
    table, *sides = gold["outputs"]
    assert table["name"] == f"{root}/gold/bands"
    assert [each["name"] for each in sides] == [f"{root}/late/bands"]
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 6
    lineage = table["facets"]["columnLineage"]["fields"]
    assert [each["field"] for each in lineage["heaviest"]["inputFields"]] == ["weight"]
    (bronze,) = of(receiver, "readings.bronze.raw")
    assert [each["name"] for each in bronze["inputs"]] == [str(engine.root.parent / "landing")]
    runs = {event["run"]["runId"] for event in events(receiver)}
    states = [(event["run"]["runId"], event["eventType"]) for event in events(receiver)]
    # What was sent before the receiver answered may come again, with the same ids.
    assert {*states} == {(run, state) for run in runs for state in ("START", "COMPLETE")}


def test_rules_are_sent_with_what_they_say(receiver: Receiver, engine: Engine) -> None:
    with lineage_sent(engine.pipeline, engine.layout, lambda _: None):
        engine.run_all()
        wait_until(lambda: sent_up_to(engine.layout), "nothing is sent", PATIENCE)
    (rules,) = of(receiver, "readings.silver.clean.rules")
    (validated,) = rules["inputs"]
    found = validated["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {each["assertion"]: each["success"] for each in found} == {"known": False, "low": True}
    (clean,) = of(receiver, "readings.silver.clean")
    assert rules["run"]["facets"]["parent"]["run"]["runId"] == clean["run"]["runId"]


def test_a_backfill_is_sent_with_its_result(receiver: Receiver, engine: Engine) -> None:
    engine.run_all()
    report = backfill(engine).report
    send_backfill(engine.pipeline, engine.layout, report, pytest.fail)
    (event,) = of(receiver, "readings.backfill.gold.bands")
    (assertion,) = event["inputs"][-1]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["success"]) == ("equal_to_bronze", True)
    assert event["outputs"] == []


def test_a_package_that_is_missing_is_named(
    receiver: Receiver, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("headgate.insight.lineage.events", "headgate.insight.lineage.datasets"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for module in [each for each in sys.modules if each.startswith("openlineage")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "openlineage", None)
    said: list[str] = []
    engine.run_all()
    with lineage_sent(engine.pipeline, engine.layout, said.append):
        wait_until(lambda: said, "nobody says that the package is missing", PATIENCE)
    assert 'pip install "headgate[lineage]"' in said[0]


def test_nothing_is_sent_unless_it_is_asked_for(
    receiver: Receiver, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    with lineage_sent(engine.pipeline, engine.layout, pytest.fail):
        engine.run_all()
    assert events(receiver) == []
    assert sent_up_to(engine.layout) == {}
