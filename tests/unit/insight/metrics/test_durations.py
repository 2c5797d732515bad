"""Durations of stages and from arrival to gold, from the times that commits have."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.model import Publication
from headgate.insight.metrics.parts import durations as module
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.parts.durations import Durations
from headgate.insight.metrics.samples import Histograms
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.state import Kind, State
from tests.support.joins import declared
from tests.unit.insight.metrics.conftest import observed

SECOND = 1_000_000
STAGE, LATENCY = "batch_duration_seconds", "arrival_to_gold_seconds"
GOLD = "gold/per_minute"


def commit(
    path: str, n: int, seconds: float, *, since: int | None = None, **more: object
) -> Commit:
    """The commit of batch ``n`` of a table, written at ``seconds``."""
    state = replace(State.empty(path), kind="data", n=n, from_n=n - 1 if since is None else since)
    if path.startswith("bronze"):
        arrived = more.pop("arrived", None)
        at = None if arrived is None else int(float(str(arrived)) * SECOND)
        state = replace(state, payload=BronzePayload(arrived=at))
    state = replace(state, **more)  # type: ignore[arg-type]
    return Commit(n, state, (), written_at=int(seconds * SECOND))


@pytest.fixture
def graph(place: WatchedPipeline) -> Graph:
    return graph_of(place.declared)


@pytest.fixture
def durations(graph: Graph, histograms: Histograms) -> Durations:
    return Durations("tiny", graph, histograms, {GOLD: timedelta(seconds=11)})


def take(durations: Durations, graph: Graph, path: str, taken: Commit) -> None:
    durations.take(graph[path], taken)


def test_each_stage_is_measured_from_what_it_reads(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    begin = 10 * SECOND
    take(durations, graph, "bronze/events", commit("bronze/events", 1, 12, arrived=4, at=begin))
    take(durations, graph, "silver/good", commit("silver/good", 1, 15))
    take(durations, graph, GOLD, commit(GOLD, 1, 19))
    assert observed(histograms, STAGE, "bronze") == (1, 2)
    assert observed(histograms, STAGE, "silver") == (1, 3)
    assert observed(histograms, STAGE, "gold") == (1, 4)
    assert observed(histograms, LATENCY, GOLD) == (1, 15)


def test_a_step_over_several_batches_is_one_stage_and_a_latency_for_each_batch(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    for n, arrived in ((1, 1), (2, None), (3, 6)):
        taken = commit("bronze/events", n, 10 + n, arrived=arrived)
        take(durations, graph, "bronze/events", taken)
    take(durations, graph, "silver/good", commit("silver/good", 3, 20, since=0))
    take(durations, graph, GOLD, commit(GOLD, 3, 21, since=0))
    assert observed(histograms, STAGE, "silver") == (1, 7)
    assert observed(histograms, LATENCY, GOLD) == (2, 20 + 15)


def test_results_are_as_old_as_the_oldest_batch_that_they_lack(
    durations: Durations, graph: Graph
) -> None:
    now = datetime.fromtimestamp(60, UTC)
    assert durations.age(graph[GOLD], 0, now) == 0
    for n, arrived in ((1, 10), (2, None), (3, 30), (4, 20)):
        taken = commit("bronze/events", n, 40 + n, arrived=arrived)
        take(durations, graph, "bronze/events", taken)
    ages = [durations.age(graph[GOLD], n, now) for n in range(5)]
    assert ages == [50, 40, 40, 40, 0]
    later = commit("bronze/events", 5, 99, arrived=70)
    take(durations, graph, "bronze/events", later)
    assert durations.age(graph[GOLD], 4, now) == 0, "clocks of machines differ"


def test_a_publication_is_measured_from_its_tables_commit_and_an_event_is_not(
    place: WatchedPipeline, histograms: Histograms
) -> None:
    """What is held has no commit: the event may come long after the last one."""
    out = Publication("out", "gold", "per_minute", "final", "kafka", None)
    graph = graph_of(replace(place.declared, publish={"out": out}))
    durations = Durations("tiny", graph, histograms, {GOLD: timedelta(seconds=11)})
    take(durations, graph, GOLD, commit(GOLD, 1, 10))
    path = "_headgate/publish/out"
    take(durations, graph, path, commit(path, 1, 13, payload=PublicationPayload(1)))
    take(durations, graph, path, commit(path, 1, 900, payload=PublicationPayload(1, "00042-1")))
    assert observed(histograms, STAGE, "publish") == (1, 3)


def test_batches_above_the_limit_are_counted(durations: Durations, graph: Graph) -> None:
    """Eleven seconds is no bound of the histogram."""
    for n, seconds in ((1, 10.9), (2, 11), (3, 11.001), (4, 90_000)):
        take(durations, graph, "bronze/events", commit("bronze/events", n, n, arrived=n))
        take(durations, graph, GOLD, commit(GOLD, n, n + seconds))
    assert durations.slow == {GOLD: 2}


@pytest.mark.parametrize("kind", ["fence", "maintenance", "reset", "operation", "create"])
def test_only_commits_with_data_are_measured(
    durations: Durations, graph: Graph, histograms: Histograms, kind: Kind
) -> None:
    take(durations, graph, "bronze/events", commit("bronze/events", 1, 12, arrived=4))
    take(durations, graph, "silver/good", commit("silver/good", 1, 15, kind=kind))
    take(durations, graph, GOLD, commit(GOLD, 1, 15, kind=kind))
    assert observed(histograms, STAGE, "silver") == (0, 0)
    assert observed(histograms, LATENCY, GOLD) == (0, 0)


def test_what_was_there_before_is_remembered_and_not_measured(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    durations.begin_with(graph["bronze/events"], commit("bronze/events", 1, 12, arrived=4))
    assert observed(histograms, STAGE, "bronze") == (0, 0)
    take(durations, graph, "silver/good", commit("silver/good", 1, 15))
    assert observed(histograms, STAGE, "silver") == (1, 3)


def test_a_batch_that_was_not_seen_is_not_measured(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    take(durations, graph, "silver/good", commit("silver/good", 7, 15))
    take(durations, graph, GOLD, commit(GOLD, 7, 15, since=0))
    assert observed(histograms, STAGE, "silver") == (0, 0)
    assert observed(histograms, LATENCY, GOLD) == (0, 0)


def test_after_a_reset_batch_ids_mean_other_batches(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    take(durations, graph, "bronze/events", commit("bronze/events", 2, 12, arrived=4))
    take(durations, graph, "bronze/events", commit("bronze/events", 1, 13, kind="reset"))
    take(durations, graph, GOLD, commit(GOLD, 2, 20))
    assert observed(histograms, LATENCY, GOLD) == (0, 0)


def test_clocks_that_differ_give_no_negative_time(
    durations: Durations, graph: Graph, histograms: Histograms
) -> None:
    take(durations, graph, "bronze/events", commit("bronze/events", 1, 12, arrived=14))
    take(durations, graph, GOLD, commit(GOLD, 1, 13))
    assert observed(histograms, LATENCY, GOLD) == (1, 0)


def test_memory_is_bounded(
    durations: Durations, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    for n in range(1, 9):
        taken = commit("bronze/events", n, n, arrived=n)
        take(durations, graph, "bronze/events", taken)
    assert list(durations._arrived["bronze/events"]) == [6, 7, 8]
    assert list(durations._by_batch["bronze/events"]) == [6, 7, 8]
    assert list(durations._by_version["bronze/events"]) == [6, 7, 8]


def test_a_join_is_measured_from_the_last_table_that_it_reads(histograms: Histograms) -> None:
    """It waits for both. Without the commit of one, it is not known how long it took."""
    joined = graph_of(declared())
    durations = Durations("tiny", joined, histograms, {})
    path, clicks, purchases = "gold/bought", "silver/clicks", "silver/purchases"
    for n, ends in ((1, {clicks: 12, purchases: 15}), (2, {clicks: 28, purchases: 21})):
        for table, seconds in ends.items():
            take(durations, joined, table, commit(table, n, seconds))
        take(durations, joined, path, commit(path, n, 10 * n + 9))
    assert observed(histograms, STAGE, "gold") == (2, 5)
    take(durations, joined, clicks, commit(clicks, 3, 31))
    take(durations, joined, path, commit(path, 3, 39))
    assert observed(histograms, STAGE, "gold") == (2, 5)
