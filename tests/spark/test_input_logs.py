"""What changes an input log under a join: sources that return, are added to a join or taken from
it, tables that are declared again, and jobs of their own that start before it has gone back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.kinds import INPUTS
from headgate.driver.opening import open_tables
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.task import NO_REBUILD, RebuildRequest
from headgate.history.savepoints.restore import restore_savepoint
from headgate.lake.tables.errors import LogGapError
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.joined_project import Event, Joined, events, prove
from tests.support.joined_sources import LOG, SOURCES, JoinedSources

pytestmark = pytest.mark.spark

WEB, TILL = SOURCES
BOUGHT = Joined("bought", 0, 60)
CHANGED = RebuildRequest(changed=True)
COUNTS = """
  counts:
    from: clicks
    window: {tumbling: 1 minute}
    measures: {clicks: count(*)}
    allowed_lateness: 20 s
"""


@dataclass(frozen=True)
class OfOneSource(Joined):
    """The join of two tables of one source: of clicks with themselves."""

    @property
    def text(self) -> str:
        text = super().text.replace("right: purchases", "right: views")
        return text.replace("purchases.", "views.")


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> JoinedSources:
    return JoinedSources(
        tmp_path, spark, joins=(BOUGHT,), more=COUNTS, views="\n  views: {from: web}"
    )


def later() -> list[Event]:
    """Other events, of the time after the first ones."""
    return [
        replace(event, id=f"later-{event.id}", at=event.at + timedelta(seconds=40))
        for event in events(200, seed=6)
    ]


def deliver(project: JoinedSources, engine: Engine, count: int, begin: int = 0) -> None:
    """Each source delivers ``count`` times."""
    sent = events(200, seed=5)
    for at in range(begin, begin + 20 * count, 20):
        project.land(sent[at : at + 20])
        project.run(engine)


def rebuilt(project: JoinedSources, *tables: str) -> Engine:
    """A driver that has rebuilt some tables, or without any those that are declared otherwise."""
    engine = project.engine(RebuildRequest(tables) if tables else CHANGED)
    for _ in range(4):
        engine.catch_up()
    assert (engine.runtime.rebuild, engine.runtime.held) == (None, {})
    return engine


def test_a_join_is_rebuilt_after_a_source_has_returned_with_another(
    project: JoinedSources,
) -> None:
    """The return is decided when bronze has a batch of the other source that the log lacks."""
    engine = project.engine()
    deliver(project, engine, 2)
    sent = later()
    project.land([event for event in sent[:60] if event.kind == "click"])
    project.run(engine)
    engine.runtime.decide_idle(LOG, [TILL], engine.clock())
    engine.catch_up()
    project.land([event for event in sent if event.kind == "purchase" or event in sent[60:]])
    for source in SOURCES:
        engine.list_new(source)
        engine.ingest(None, source)
    engine.catch_up()
    assert engine.decisions().idle(LOG) == ()
    before = project.rows(BOUGHT), sorted(project.late_ids(BOUGHT))
    assert len(before[1]) > len(project.late())
    again = rebuilt(project, "silver/clicks")
    assert (project.rows(BOUGHT), sorted(project.late_ids(BOUGHT))) == before
    prove(again)


def test_a_join_may_get_other_sources(project: JoinedSources) -> None:
    """Its batch ids are then those of other sources, and are not compared with the old ones."""
    project.joins = (OfOneSource("bought", 0, 60),)
    deliver(project, project.engine(), 5)
    project.joins = (BOUGHT,)
    prove(rebuilt(project))
    project.compare(project.on_time(), project.upto())
    project.joins = (OfOneSource("bought", 0, 60),)
    prove(rebuilt(project))
    project.joins = (BOUGHT,)
    prove(rebuilt(project))
    project.compare(project.on_time(), project.upto())


def test_a_drain_does_not_come_back_when_a_join_is_declared_again(project: JoinedSources) -> None:
    engine = project.engine()
    deliver(project, engine, 3)
    engine.drain()
    project.joins = ()
    rebuilding = project.engine(RebuildRequest((f"bronze/{TILL}",)))
    rebuilding.list_new(TILL)
    rebuilding.ingest(None, TILL)
    for _ in range(3):
        rebuilding.catch_up()
    assert rebuilding.runtime.rebuild is None
    project.joins = (BOUGHT,)
    again = rebuilt(project)
    deliver(project, again, 4, begin=60)
    project.compare(project.on_time(), project.upto())
    assert sorted(project.late_ids(BOUGHT)) == sorted(event.id for event in project.late())
    prove(again)


def test_a_restore_leaves_the_log_of_a_join_that_is_not_declared(project: JoinedSources) -> None:
    engine = project.engine()
    deliver(project, engine, 3)
    savepoint = engine.savepoint()
    deliver(project, engine, 1, begin=60)
    project.joins = ()
    project.engine().restore(savepoint)
    project.engine().catch_up()
    project.joins = (BOUGHT,)
    again = rebuilt(project)
    deliver(project, again, 2, begin=80)
    project.compare(project.on_time(), project.upto())
    prove(again)


@pytest.mark.parametrize(
    ("damaged", "waiting"), [(f"bronze/{WEB}", {WEB}), (INPUTS.path(LOG), {WEB, TILL})]
)
def test_damage_lets_only_requests_wait_that_it_concerns(
    project: JoinedSources, damaged: str, waiting: set[str]
) -> None:
    """With one source damaged, the log waits with it, and the other source goes on."""
    runtime = project.engine().runtime
    runtime.damaged.add(damaged, LogGapError("torn", remedy="repair it"))
    assert runtime.undecidable == waiting
    assert runtime.position().keys() == {WEB, TILL} - ({WEB} if waiting == {WEB} else set())
    runtime.advance_inputs()


def test_gold_waits_until_its_log_has_gone_back(project: JoinedSources) -> None:
    """A restore with bronze dies after its decision, and the jobs of silver and gold start before
    that of bronze."""
    engine = project.engine()
    deliver(project, engine, 3)
    savepoint, rows = engine.savepoint(), project.rows(BOUGHT)
    project.land([event for event in later() if event.kind == "click"])
    project.run(engine)
    engine.runtime.decide_idle(LOG, [TILL], engine.clock())
    engine.catch_up()
    assert len(project.rows(BOUGHT)) > len(rows)
    epoch, place = engine.epoch + 1, (engine.layout, engine.pipeline, savepoint)
    with dying("reset.intended"):
        restore_savepoint(*place, epoch, engine.clock(), reread=True)
    for layer in ("silver", "gold", "bronze"):
        epoch += 1
        job = PipelineRuntime(engine.spark, engine.pipeline, engine.layout, (layer,))
        open_tables(job, engine.layout, epoch, engine.clock(), NO_REBUILD)
        job.catch_up(engine.clock())
        assert job.held == {}
        assert layer == "silver" or project.rows(BOUGHT) == rows
    prove(project.engine())
