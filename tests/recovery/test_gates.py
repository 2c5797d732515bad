"""Drivers of a gated table are killed between staging, validation, commit and release: a version
that was not let through is never visible, and a release lets one version through, once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.property.protocol.histories import history_faults
from tests.support.drivers import run, start
from tests.support.failing import dying
from tests.support.gated import TABLE, GatedProject
from tests.support.rounds import IN_FULL, ROUNDS, in_full
from tests.support.tables import states

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

# The first commit of a driver to a table is its fence.
HELD = ("gold.staged", "late.committed:2", "gate.validated")
RELEASED = ("gold.staged", "gate.validated", "gold.committed:2")
CASES = (
    [(held, released) for held in HELD for released in RELEASED]
    if IN_FULL
    else [("late.committed:2", "gate.validated")]
)


class Killed(GatedProject):
    """In long runs, each killed driver is a process of its own. The next driver runs in this
    process."""

    def kill(self, place: str) -> None:
        if IN_FULL:
            ended = run(self.declaration, self.root, failpoint=place)
            assert ended.was_killed, f"{place}: {ended.output}"
        else:
            name, _, nth = place.partition(":")
            with dying(name, int(nth or 1)):
                self.engine().run_all()

    def go_on(self, visible: int, *, is_held: bool) -> None:
        """Run a new driver. Afterwards, the version of the first ``visible`` events is visible."""
        engine = self.catch_up(self.engine())
        assert (self.hold(engine) is not None) == is_held
        self.require_visible(visible)
        late = [f"e{each.number}" for each in self.events if each.is_late]
        assert [row["id"] for row in self.read(f"late/{TABLE}")] == late
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()

    def require_visible(self, events: int) -> None:
        assert self.versions()[-1] == self.version(events)

    def releases(self) -> list[str]:
        """The reasons of the commits that a person let through."""
        found = [state["gate"] for state in states(self.root, f"gold/{TABLE}")]
        commits = {each["at"]: each["released"] for each in found if each and each["released"]}
        return [released["reason"] for released in commits.values()]


@pytest.mark.parametrize(("at_hold", "at_release"), CASES)
def test_killed_on_the_way_into_a_hold_and_out_of_it(
    spark: SparkSession, tmp_path: Path, at_hold: str, at_release: str
) -> None:
    project = Killed(tmp_path, spark)
    project.deliver("good")
    project.go_on(1, is_held=False)
    project.deliver("bad")
    project.deliver("good", is_late=True)
    project.kill(at_hold)
    project.require_visible(1)
    project.go_on(1, is_held=True)
    project.release(project.engine())
    project.kill(at_release)
    project.deliver("good")
    # The released row has not changed, so it holds no later version. A new bad one does.
    project.go_on(4, is_held=False)
    assert project.releases() == ["a real outlier"]
    project.deliver("bad")
    project.go_on(4, is_held=True)
    project.deliver("corrected", 1)
    project.deliver("corrected", 4)
    project.go_on(7, is_held=False)
    assert project.releases() == ["a real outlier"]
    assert project.versions() == [(), *map(project.version, (1, 3, 4, 7))]
    engine = project.engine()
    assert history_faults(engine.layout, engine.pipeline) == []


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Each version has folded the first events, and never fewer than the previous version. A
    minute that breaks the rule was released by a person."""
    chance = random.Random(seed)
    project = Killed(tmp_path, spark)
    released, minutes = 0, set[int]()
    for _ in range(4):
        project.deliver(chance.choice(["good", "bad"]))
        if project.table.exists() and project.hold(engine := project.engine()) is not None:
            project.release(engine)
            released += 1
            minutes.update(project.faulty())
        if chance.random() < 0.5:
            name = chance.choice((*HELD, *RELEASED)).partition(":")[0]
            run(project.declaration, project.root, failpoint=f"{name}:{chance.randrange(1, 4)}")
        else:
            driver = start(project.declaration, project.root)
            time.sleep(chance.uniform(5, 25))
            driver.kill()
    for minute in project.faulty():
        project.deliver("corrected", minute)
    project.go_on(len(project.events), is_held=False)
    counts = {project.version(count): count for count in range(len(project.events) + 1)}
    seen = [counts[version] for version in project.versions()]
    assert seen == sorted(seen)
    assert minutes.issuperset(minute for count in seen for minute in project.faulty(count))
    assert len(project.releases()) <= released
