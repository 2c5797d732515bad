"""Guarantee A: what tables hold depends on the files, not on batches, jobs or restarts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.oracle import Closing, Rules, derive
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import GOLD_KEYS, declare, rules, with_step
from tests.support.rounds import IN_FULL
from tests.support.tables import differences

pytestmark = pytest.mark.spark

LAYOUTS = {
    "whole": (6,),
    "single files": (1, 2, 3, 4, 5, 6),
    "pairs": (2, 4, 6),
    "first alone": (1, 6),
    "last alone": (5, 6),
    "uneven": (1, 3, 4, 6),
}
JOBS = ("fused", "per_layer", "switched", "steps")
"""With ``steps``, a table takes its first step at once, and the next one at the end."""
EVERY, FEW = tuple(GOLD_KEYS), ("sliding", "bands")
# Each kind of jobs once; `make nightly` tries all combinations. For a fused driver, Hypothesis
# chooses batches and restarts in tests/property/test_pipeline.py. The same code folds all measures
# in every kind of jobs, so per_minute with its many measures is tried once.
IN_SHORT = {
    ("pairs", "steps", False): EVERY,
    ("last alone", "per_layer", True): FEW,
    ("uneven", "switched", False): FEW,
}
CASES = [
    pytest.param(*case, gold, id="{}-{}-{}".format(*case[:2], "restart" if case[2] else "through"))
    for case in product(LAYOUTS, JOBS, (True, False))
    if (gold := EVERY if IN_FULL else IN_SHORT.get(case))
]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=3), 6))
    return landing


def drive(engine: Engine, layout: str, jobs: str, restart: bool) -> None:
    ends = LAYOUTS[layout]
    middle, is_first = ends[(len(ends) - 1) // 2], True
    engine.list_new()
    for end in ends:
        engine.ingest(end)
        if restart and end == middle:
            engine.start()
            is_first = True
        if jobs == "steps":
            is_level = engine.runtime.catch_up(engine.clock(), one_step=True)
            assert is_level == is_first
            is_first = False
        elif jobs == "fused" or (jobs == "switched" and end <= middle and end != ends[-1]):
            engine.catch_up()
        elif end in (middle, ends[-1]):
            engine.catch_up_per_layer()
    if jobs == "steps":
        engine.catch_up()


@pytest.mark.parametrize(("layout", "jobs", "restart", "gold"), CASES)
def test_tables_do_not_depend_on_batches_jobs_or_restarts(
    spark: SparkSession,
    tmp_path: Path,
    landing: Landing,
    layout: str,
    jobs: str,
    restart: bool,
    gold: tuple[str, ...],
) -> None:
    pipeline = declare(tmp_path, landing.folder, gold=gold)
    declared = with_step(pipeline) if jobs == "steps" else pipeline
    engine = Engine(spark, declared, tmp_path / "root")
    drive(engine, layout, jobs, restart)
    assert differences(engine.root, derive(landing.records(), rules(gold=gold))) == {}


def test_the_input_holds_every_outcome(landing: Landing) -> None:
    expected = derive(landing.records(), rules())
    reasons = {row["reason"] for row in expected.quarantine}
    assert reasons == {
        "unparsable",
        "not_an_object",
        "missing_id",
        "missing_time",
        "unparsable_time",
        "future",
        "wrong_type",
    }
    assert all(expected.late.values())
    assert expected.counts["differing"] < expected.counts["duplicate"]
    assert 0 < expected.counts["corrected"] < expected.counts["quarantined"]
    assert {row["final"] for rows in expected.gold.values() for row in rows} == {True, False}


@pytest.mark.parametrize(
    ("differing", "unknown"),
    [
        ("keep", "rescue"),
        ("quarantine", "quarantine"),
    ],
)
def test_other_answers_to_differing_duplicates_and_unknown_fields(
    spark: SparkSession, tmp_path: Path, landing: Landing, differing: str, unknown: str
) -> None:
    pipeline = declare(
        tmp_path,
        landing.folder,
        differing=differing,
        unknown=unknown,
        gold=("bands",),
        silver=("strong",),
    )
    prescribed = rules(differing=differing, unknown=unknown, gold=("bands",), silver=("strong",))
    if unknown == "rescue":
        pipeline, prescribed = using_rescued(pipeline, prescribed)
    engine = Engine(spark, pipeline, tmp_path / "root")
    engine.list_new()
    for end in (2, 6):
        engine.ingest(end)
        engine.catch_up()
    expected = derive(landing.records(), prescribed)
    reasons = {row["reason"] for row in expected.quarantine}
    assert ("differing_duplicate" in reasons) == (differing == "quarantine")
    # The engine counts differing duplicates in every mode; the oracle counts them only for warn.
    del expected.counts["differing"]
    assert differences(engine.root, expected) == {}


def using_rescued(pipeline: Pipeline, prescribed: Rules) -> tuple[Pipeline, Rules]:
    """The declaration with a column that reads the rescued fields, and with a filter on them."""
    text = pipeline.text.replace(
        "doubled: level * 2\n",
        "doubled: level * 2\n      again: get_json_object(_rescued, '$.again')\n",
    )
    pipeline.file.write_text(text.replace("level >= 5\n", "level >= 5 and _rescued is null\n", 1))
    clean, strong = prescribed.silver["clean"], prescribed.silver["strong"]
    again = {"again": lambda row: None if row["_rescued"] is None else "1"}
    clean = replace(clean, columns={**clean.columns, **again})
    strong = replace(strong, where=lambda row: row["_rescued"] is None and (row["level"] or 0) >= 5)
    return load(pipeline.file), replace(prescribed, silver={"clean": clean, "strong": strong})


def test_windows_closed_in_the_middle(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    gold = ("sliding", "bands")
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=gold), tmp_path / "root")
    engine.list_new()
    engine.ingest(2)
    engine.catch_up()
    engine.drain()
    engine.start()
    engine.ingest(6)
    engine.catch_up()
    engine.drain()
    records = landing.records()
    # The oracle counts files from 0.
    seen = [max(r.offset for r in records if r.offset >> 36 < files) for files in (2, 6)]
    expected = derive(records, rules(gold=gold), drains=[Closing({0: last}) for last in seen])
    assert {row["reason"] for rows in expected.late.values() for row in rows} == {"late", "closed"}
    assert differences(engine.root, expected) == {}
