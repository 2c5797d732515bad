"""Whole pipelines from Hypothesis: what arrives, where batches end, when the driver restarts."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.oracle import judge
from tests.support.engine import Engine
from tests.support.events import MALFORMED, reading
from tests.support.landing import Landing, lines
from tests.support.readings import NOON, declare, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("sliding", "bands")

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "site": st.sampled_from(["North", "south", None]),
        "value": st.sampled_from([-1, 0.005, 2.5, None]),
        "level": st.sampled_from([0, 5, 12, -15, None]),
        "weight": st.sampled_from([0.1, 3, None]),
        "ok": st.sampled_from([True, False, None]),
    },
)
IDS = st.integers(0, 30).map("r-{}".format)


def _at(low: float, high: float) -> st.SearchStrategy[bytes]:
    seconds = st.integers(int(low * 60), int(high * 60))
    return st.builds(
        lambda id_, second, fields: reading(id_, NOON + timedelta(seconds=second), **fields),
        IDS,
        seconds,
        FIELDS,
    )


RECORDS = st.one_of(
    _at(5, 15),
    _at(5, 15),
    _at(5, 15),
    _at(-30, 5),  # late, once a later one has come
    _at(15, 29),
    _at(91, 200),  # future: more than an hour after the files arrived
    st.sampled_from(sorted(MALFORMED.values())),
)
# Each step is a file, and what happens once it is there.
STEPS = st.lists(
    st.tuples(
        st.lists(RECORDS, max_size=12),
        st.booleans(),  # sent again within the file
        st.sets(st.sampled_from(["absorb", "restart", "catch up"])),
    ),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=100 if IN_FULL else 5,
    deadline=None,
    derandomize=not IN_FULL,
    suppress_health_check=list(HealthCheck),
)
@given(STEPS)
def test_any_pipeline_equals_the_oracle(
    spark: SparkSession, steps: list[tuple[list[bytes], bool, set[str]]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        landing = Landing(folder / "landing")
        engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
        for number, (records, again, then) in enumerate(steps, 1):
            landing.write_all([lines(records * 2 if again else records)], first=number)
            if "absorb" in then:
                engine.list_new()
                engine.absorb()
            if "restart" in then:
                engine.start()
            if "catch up" in then:
                engine.catch_up()
        engine.run_all()
        assert differences(engine.root, judge(landing.records(), rules(gold=GOLD))) == {}
