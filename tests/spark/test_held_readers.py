"""Readers that poll a gated table never see a version that breaks its rules, unless it is
released."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.drivers import PATIENCE
from tests.support.gated import COLUMN, GatedProject
from tests.support.polling import (
    Values,
    looked_again,
    polled,
    with_deltalake,
    with_duckdb,
    with_polars,
)
from tests.support.rounds import IN_FULL, ROUNDS, in_full
from tests.support.spark_reader import polled_by_spark

pytestmark = pytest.mark.spark

LOOKS = {
    "deltalake": with_deltalake(COLUMN),
    "duckdb": with_duckdb(COLUMN),
    "polars": with_polars(COLUMN),
}
STEPS = ("good", "bad", "correct", "release", "restart")
STORY = ("good", "bad", "good", "release", "good", "correct")


@contextmanager
def watched(project: GatedProject, folder: Path) -> Iterator[dict[str, list[Values]]]:
    """What each reader saw. Spark takes long to start, so it reads only in long runs."""
    with ExitStack() as stack:
        seen = stack.enter_context(polled(project.table, LOOKS, pause=0.2))
        if IN_FULL:
            spark = stack.enter_context(polled_by_spark(project.table, COLUMN, folder))
            seen = {**seen, "spark": spark}
        yield seen


class Story:
    """Plays steps, and tracks which version is visible after each. A released minute no longer
    holds a version: only a correction changes it."""

    def __init__(self, project: GatedProject, seen: dict[str, list[Values]]) -> None:
        self._project, self._seen = project, seen
        self.engine = project.engine()
        self._visible: Values = ()
        self._looks = dict.fromkeys(seen, 0)
        self.holds = self.releases = 0
        self._released = set[int]()

    def play(self, step: str) -> None:
        project = self._project
        if step == "restart":
            self.engine = project.engine()
        elif step == "release":
            self._release()
            return
        elif step == "correct":
            for minute in project.faulty():
                project.deliver("corrected", minute)
        else:
            project.deliver(step)
        project.catch_up(self.engine)
        is_held = bool({*project.faulty()} - self._released)
        self._require_seen(step, len(project.events) if not is_held else None)
        self.holds += project.hold(self.engine) is not None

    def _release(self) -> None:
        if self._project.hold(self.engine) is not None:
            self._project.release(self.engine)
            self._released.update(self._project.faulty())
            self.engine.catch_up()
            self.releases += 1
            self._require_seen("release", len(self._project.events))

    def _require_seen(self, step: str, events: int | None) -> None:
        """Since the last step, each reader saw only the version before the step and then the
        version after it: that of ``events`` events, or the same one if ``events`` is None."""
        after = self._visible if events is None else self._project.version(events)
        looked_again(self._seen, PATIENCE)
        for name, found in self._seen.items():
            looks = found[self._looks[name] :]
            self._looks[name] += len(looks)
            assert set(looks) <= {self._visible, after}, (step, name, looks)
            assert looks[-1] == after, (step, name)
        self._visible = after


def play(spark: SparkSession, folder: Path, steps: Sequence[str]) -> Story:
    project = GatedProject(folder, spark)
    project.engine()  # creates the tables
    with watched(project, folder) as seen:
        story = Story(project, seen)
        looked_again(seen, PATIENCE)
        for step in steps:
            story.play(step)
    return story


def test_no_reader_sees_a_version_that_is_held(spark: SparkSession, tmp_path: Path) -> None:
    story = play(spark, tmp_path, STORY)
    assert (story.holds, story.releases) == (2, 1)


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_reader_sees_a_held_version_in_a_random_story(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    play(spark, tmp_path, random.Random(seed).choices(STEPS, weights=(4, 3, 2, 3, 1), k=20))
