"""Whole pipelines from Hypothesis: what arrives, where batches end, when the driver restarts."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.lake.tables.state import commit_time
from tests.oracle import OtherDecision, Replay, SourceRecord, derive
from tests.oracle.rules import Happening
from tests.support.backfilled import backfill, unequal
from tests.support.engine import Engine
from tests.support.events import MALFORMED, reading
from tests.support.landing import Landing, lines, loaded
from tests.support.readings import NOON, declare, rules, with_step
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
    _at(-30, 5),  # late, if a later record came before
    _at(15, 29),
    _at(91, 200),  # future: more than an hour after the files arrived
    st.sampled_from(sorted(MALFORMED.values())),
)
FROM = NOON + timedelta(minutes=-10)
REPLAYS: Mapping[str, tuple[Replay, Mapping[str, Any]]] = {
    "replay bands": (Replay({}, "bands"), {"from": None, "keys": {}}),
    "replay high bands": (
        Replay({}, "bands", FROM, keys={"band": "high"}),
        {"from": commit_time(FROM), "keys": {"band": "high"}},
    ),
    "replay sliding": (
        Replay({}, "sliding", keys={"ok": True}),
        {"from": None, "keys": {"ok": "true"}},
    ),
}
"""Replays of late rows, as arguments for the oracle and for the engine."""

OTHERS = ("process", "load", "restart", "step", "catch up", "savepoint", "restore")

# Each step is a file, and the actions after its arrival.
STEPS = st.lists(
    st.tuples(
        st.lists(RECORDS, max_size=12),
        st.booleans(),  # sent again within the file
        st.sets(st.sampled_from([*OTHERS, *REPLAYS])),
        st.lists(RECORDS, min_size=1, max_size=6),  # the records of an archive, if one is loaded
    ),
    min_size=1,
    max_size=5,
)


def fill_up(happenings: list[Happening], last: int) -> None:
    """Add what changes no gold table, up to decision ``last``: each decision has a number, also
    those on loads and restores, and those that a restore has left out of force."""
    happenings += [OtherDecision()] * (last - len(happenings))


@settings(
    max_examples=100 if IN_FULL else 2,
    derandomize=not IN_FULL,
    suppress_health_check=list(HealthCheck),
)
@given(STEPS)
def test_any_pipeline_equals_the_oracle(
    spark: SparkSession, steps: list[tuple[list[bytes], bool, set[str], list[bytes]]]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        landing = Landing(folder / "landing")
        pipeline = with_step(declare(folder, landing.folder, gold=GOLD))
        engine = Engine(spark, pipeline, folder / "root")
        happenings, processed = list[Happening](), 0
        history: list[SourceRecord] = []
        savepoint, at_savepoint = engine.savepoint(), (0, 0, 0)
        for number, (values, again, then, old) in enumerate(steps, 1):
            landing.write_all([lines(values * 2 if again else values)], first=number)
            if "process" in then:
                engine.list_new()
                engine.ingest()
                processed = number
            # The oracle counts files from 0.
            known = [r.offset for r in landing.records() if r.offset >> 36 < processed]
            after = {0: max(known, default=-1)}
            for replay, document in (REPLAYS[name] for name in REPLAYS if name in then):
                engine.operate("late_replay", table=replay.table, to=None, **document)
                happenings.append(dataclasses.replace(replay, after=after))
            if "load" in then:
                archive = Landing(folder / f"archive-{number}")
                archive.write_all([lines(old)])
                engine.begin_load(files=str(archive.folder))
                fill_up(happenings, engine.decisions().last)
                asked = len(engine.operations())
                engine.load()
                load = len(engine.bronze_loads())
                history += loaded(archive, after, load, len(happenings))
                for each in engine.operations()[asked:]:
                    fill_up(happenings, each.number - 1)
                    happenings.append(Replay(after, each.document["table"], load=load))
                fill_up(happenings, engine.decisions().last)
            if "restart" in then:
                engine.start()
            if "step" in then:
                engine.runtime.catch_up(engine.clock(), one_step=True)
            if "catch up" in then:
                engine.catch_up()
            if "savepoint" in then:
                savepoint = engine.savepoint()
                at_savepoint = (processed, len(happenings), len(history))
            if "restore" in then:
                engine.restore(savepoint, reread=True)
                engine.start()
                processed, replayed, loaded_before = at_savepoint
                del happenings[replayed:], history[loaded_before:]
                fill_up(happenings, engine.decisions().last)
        engine.run_all()
        records = [*landing.records(), *history]
        expected = derive(records, rules(gold=GOLD), drains=happenings)
        assert differences(engine.root, expected) == {}
        if IN_FULL:  # takes as long as all the rest
            assert unequal(backfill(engine)) == []
