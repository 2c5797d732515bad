"""A source of Kafka during a pause: it is still polled, but ingests nothing."""

from __future__ import annotations

from headgate.driver.source_loop import SourceLoop
from tests.support.readings import KafkaKeys
from tests.unit.flow.sources.kafka.conftest import Place, read_all

A_MINUTE: KafkaKeys = {"idle_after": "1 minute"}


def wait_paused(place_: Place, source: SourceLoop, seconds: int) -> None:
    """Each second, one partition gets a record, the other nothing, and the driver polls."""
    for _ in range(seconds):
        place_.now += 1
        place_.brokers.logs["a"][0].end += 1
        source.poll(final=False)


def test_a_partition_with_unread_records_is_not_idle_after_a_pause(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    source = place.start(**A_MINUTE)
    read_all(source)
    place.brokers.logs["a"][1].end += 1
    wait_paused(place, source, 600)
    behind = source.backlog().partitions
    assert (behind["a/0"].records, behind["a/1"].records) == (600, 1)
    assert behind["a/1"].seconds >= 590
    assert source.ingest()
    assert set(place.bronze.commits[-1].partitions) == {0, 1}


def test_a_partition_that_was_read_before_the_pause_is_idle_as_without_one(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    source = place.start(**A_MINUTE)
    read_all(source)
    wait_paused(place, source, 600)
    assert source.ingest()
    assert set(place.bronze.commits[-1].partitions) == {0}
