"""Joins of tables of two sources: whatever the order in which the sources deliver, the results are
as plain Python says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.kinds import INPUTS
from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.joined_project import LATENESS, MICRO, NOON, Event, events, late, output, prove
from tests.support.joined_sources import LOG, SOURCE, SOURCES, JoinedSources
from tests.support.landing import Landing, lines
from tests.support.rounds import some
from tests.support.tables import read
from tests.support.toys import toys

pytestmark = pytest.mark.spark

CLICKS, PURCHASES = SOURCES
ALL: dict[str, Any] = {"from": None, "to": None, "keys": {}}


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> JoinedSources:
    return JoinedSources(tmp_path, spark)


def replay_all(project: JoinedSources, engine: Engine) -> None:
    for join in project.joins:
        engine.operate("late_replay", table=join.name, **ALL)
    engine.catch_up()


SIZES = [((160,),), ((7, 1, 90, 62),), ((40, 40, 40, 40),)]


@pytest.mark.parametrize("sizes", some(SIZES, 3, 1))
def test_pairs_are_as_plain_python_says_in_any_order(
    project: JoinedSources, sizes: Sequence[int]
) -> None:
    """One source is ahead of the other, or several batches of one come before one of the other."""
    sent = iter(events(160, seed=4))
    engine = project.engine()
    orders = [(CLICKS, PURCHASES), (PURCHASES,), (PURCHASES, CLICKS), (CLICKS,)]
    for number, size in enumerate(sizes):
        project.land([next(sent) for _ in range(size)])
        if number % 2:
            engine = project.engine()
        project.run(engine, *orders[number % len(orders)])
    project.run(engine)
    assert project.late()
    project.compare(project.on_time(), project.upto())
    for join in project.joins:
        assert sorted(project.late_ids(join)) == sorted(event.id for event in project.late())
    prove(engine)


def test_corrections_savepoints_and_rebuilds_have_the_same_pairs(project: JoinedSources) -> None:
    sent = events(240, seed=11)
    engine = project.engine()
    project.land(sent[:90])
    project.run(engine, PURCHASES, CLICKS)
    savepoint = engine.savepoint()
    early, on_time = project.upto(), project.on_time()
    project.land(sent[90:180])
    project.run(engine)
    replayed = project.late()
    replay_all(project, engine)
    project.compare(project.sent, project.upto())
    prove(engine)
    project.land(sent[180:])
    project.run(engine, CLICKS, PURCHASES)
    included = [*project.on_time(), *replayed]
    project.compare(included, project.upto())
    prove(engine)
    rebuilt = project.engine(RebuildRequest(("gold/bought", "silver/purchases")))
    for _ in range(3):
        rebuilt.catch_up()
    project.compare(included, project.upto())
    prove(rebuilt)
    # Bronze and the input log stay. All that came after the savepoint is processed again.
    rebuilt.restore(savepoint)
    project.compare(on_time, early)
    again = project.engine()
    again.catch_up()
    project.compare(included, project.upto())
    prove(again)
    # All go back, and the operations after the savepoint with them.
    again.restore(savepoint, reread=True)
    project.compare(on_time, early)
    last = project.run(project.engine())
    project.compare(project.on_time(), project.upto())
    prove(last)


def test_a_source_that_is_read_again_gives_the_same_pairs(project: JoinedSources) -> None:
    """The batch ids of one source begin again, and so do those of the input log."""
    sent = events(150, seed=9)
    engine = project.engine()
    for part in (sent[:50], sent[50:100], sent[100:]):
        project.land(part)
        project.run(engine)
    before = read(engine.root, "gold/all_of_both", "shop")
    rebuilt = project.engine(RebuildRequest((f"bronze/{PURCHASES}",)))
    rebuilt.list_new(PURCHASES)
    for end in (1, 3):
        rebuilt.ingest(end, PURCHASES)
        assert read(engine.root, "gold/all_of_both", "shop") == before
        rebuilt.catch_up()
    rebuilt.catch_up()
    project.compare(project.on_time(), project.upto())
    prove(rebuilt)
    replay_all(project, rebuilt)
    project.compare(project.sent, project.upto())
    prove(project.run(project.engine()))


def test_jobs_of_their_own_give_the_same_pairs(project: JoinedSources) -> None:
    sent = events(120, seed=41)
    engine = project.engine()
    for begin, end in pairwise((0, 30, 80, 120)):
        project.land(sent[begin:end])
        for source in SOURCES:
            engine.list_new(source)
            engine.ingest(None, source)
        engine.runtime.advance_inputs()
        engine.catch_up_per_layer()
    project.compare(project.on_time(), project.upto())
    prove(engine.start())


PLACES = [
    *("inputs.committed", "inputs.advanced", "silver.committed", "silver.committed:2"),
    *("late.committed", "late.committed:3", "gold.staged", "gold.committed", "gold.committed:2"),
]


def test_a_death_at_any_place_of_a_batch_changes_nothing(project: JoinedSources) -> None:
    sent = events(40 * len(PLACES), seed=21)
    engine = project.engine()
    for number, place in enumerate(PLACES):
        project.land(sent[40 * number : 40 * (number + 1)])
        for source in SOURCES:
            engine.list_new(source)
            engine.ingest(None, source)
        with dying(place):
            engine.catch_up()
        engine = project.engine()
    engine.catch_up()
    project.compare(project.on_time(), project.upto())
    prove(engine)


def test_a_drain_decides_all_results(project: JoinedSources) -> None:
    project.land(events(80, seed=5))
    engine = project.run(project.engine(), PURCHASES)
    # Clicks are in bronze, and nothing has processed them.
    engine.list_new(CLICKS)
    engine.ingest(None, CLICKS)
    engine.drain()
    project.compare(project.on_time(), None)
    prove(engine)


def test_loaded_history_of_one_source_is_in_the_pairs(project: JoinedSources) -> None:
    sent = events(140, seed=17)
    history = [event for event in sent[:50] if event.kind == "purchase"]
    project.land(sent[50:])
    engine = project.run(project.engine())
    archive = Landing(project.folder / "archive")
    archive.write("1.json", lines(event.line for event in history))
    engine.begin_load(files=str(archive.folder), into=PURCHASES)
    engine.load()
    engine.catch_up()
    project.compare([*history, *project.on_time()], project.upto())
    prove(engine)


def test_tables_do_not_wait_for_an_idle_source(project: JoinedSources) -> None:
    """Rows that it delivers later are late, if they are older than what was final then. A rebuild
    finds the same."""
    sent = events(120, seed=33)
    engine = project.engine()
    project.land(sent[:60])
    project.run(engine)
    before = project.on_time()
    clicks = [event for event in sent[60:] if event.kind == "click"]
    project.land(clicks)
    project.run(engine)
    project.compare(project.on_time(), project.upto())
    with dying("idle.decided"):
        engine.runtime.decide_idle(LOG, [PURCHASES], engine.clock())
    engine = project.engine()
    engine.catch_up()
    ahead = output(project.of(CLICKS))
    assert ahead > project.upto()
    project.compare(project.on_time(), ahead)
    prove(engine)
    old = [event for event in sent[60:] if event.kind == "purchase"]
    new = Event("new", "purchase", "ann", NOON + ahead * MICRO + LATENESS, 60)
    project.land([*old, new])
    with dying("idle.decided"):
        project.run(engine, PURCHASES)
    engine = project.engine()
    engine.catch_up()
    assert engine.decisions().idle(LOG) == ()
    left_out = [event for event in old if event.time < ahead]
    assert left_out
    of_logs = late(project.of(PURCHASES))
    included = [event for event in project.on_time() if event not in left_out]
    project.compare(included, ahead)
    for join in project.joins:
        wanted = {event.id for event in (*project.late(), *left_out)}
        assert {*project.late_ids(join)} == wanted
    row = next(
        row
        for row in read(engine.root, "late/bought", "shop")
        if row["_event_id"] == left_out[0].id and left_out[0] not in of_logs
    )
    behind = (ahead - left_out[0].time) * MICRO
    assert (row["reason"], row["late_seconds"]) == ("late", behind.total_seconds())
    prove(engine)
    assert before
    more = events(60, seed=34)
    shifted = [
        Event(f"x{e.id}", e.kind, e.user, e.at + timedelta(minutes=5), e.amount) for e in more
    ]
    project.land(shifted)
    project.run(engine)
    included += [event for event in shifted if event in project.on_time()]
    project.compare(included, project.upto())
    prove(engine)
    rebuilt = project.engine(RebuildRequest(("silver/clicks",)))
    for _ in range(3):
        rebuilt.catch_up()
    project.compare(included, project.upto())
    prove(rebuilt)


OF_THREE = """
pipeline: shop
sources:
{sources}
silver:
  clicks: {{from: web}}
  purchases: {{from: till}}
  returns: {{from: desk}}
gold:
  all_three:
    union: [clicks, purchases, returns]
    columns: {{id: "coalesce(clicks.id, purchases.id, returns.id)"}}
    allowed_lateness: 20 s
  some:
    union: [purchases, returns]
    columns: {{id: "coalesce(purchases.id, returns.id)"}}
    allowed_lateness: 20 s
"""


def test_tables_of_three_sources_are_read_together(tmp_path: Path, spark: SparkSession) -> None:
    """Each set of sources has an input log of its own."""
    names = ("web", "till", "desk")
    landings = {name: Landing(tmp_path / name) for name in names}
    for landing in landings.values():
        landing.folder.mkdir()
    file = tmp_path / "shop.yml"
    sources = (SOURCE.format(name=name, landing=landings[name].folder) for name in names)
    file.write_text(OF_THREE.format(sources="".join(sources)))
    sent = {name: events(60, seed=seed) for seed, name in enumerate(names)}
    with toys():
        engine = Engine(spark, load(file), tmp_path / "lake")
        for number, (begin, end) in enumerate(pairwise((0, 10, 35, 60))):
            for name in names[number:] + names[:number]:
                part = (replace(e, id=f"{name}-{e.id}").line for e in sent[name][begin:end])
                landings[name].write(f"{number}.json", lines(part))
                engine.list_new(name)
                engine.ingest(None, name)
                if number != 1:
                    engine.catch_up()
        engine.catch_up()
        for table, of in (("all_three", names), ("some", names[1:])):
            upto = min(output(sent[name]) for name in of)
            expected = {
                f"{name}-{event.id}"
                for name in of
                for event in sent[name]
                if event not in late(sent[name]) and event.time < upto
            }
            assert {row["id"] for row in read(engine.root, f"gold/{table}", "shop")} == expected
        prove(engine)
        numbering = {node.name for node in engine.runtime.graph.of(INPUTS)}
        assert numbering == {"desk-till", "desk-till-web"}
