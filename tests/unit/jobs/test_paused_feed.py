"""What a pause does to the feed of Kafka: it polls on, and nothing is asked to be absorbed."""

from __future__ import annotations

from tests.support.readings import KafkaKeys
from tests.unit.jobs.test_kafka_feed import Place, place, read_all

__all__ = ["place"]  # a fixture

A_MINUTE: KafkaKeys = {"idle_after": "1 minute"}


def wait_paused(feed_place: Place, feed: object, seconds: int) -> None:
    """One log gets a record a second, the other nothing; the driver polls."""
    for _ in range(seconds):
        feed_place.now += 1
        feed_place.brokers.logs["a"][0].end += 1
        feed.poll(final=False)  # type: ignore[attr-defined]


def test_a_partition_with_unread_records_is_not_idle_after_a_pause(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    feed = place.start(**A_MINUTE)
    read_all(feed)
    place.brokers.logs["a"][1].end += 1
    wait_paused(place, feed, 600)
    assert feed.trouble is None
    behind = feed.backlog(0).partitions
    assert (behind["a/0"].records, behind["a/1"].records) == (600, 1)
    assert behind["a/1"].seconds >= 590
    assert feed.absorb(0, 1)
    assert set(place.bronze.commits[-1].partitions) == {0, 1}


def test_a_partition_that_was_read_before_the_pause_is_idle_as_without_one(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    feed = place.start(**A_MINUTE)
    read_all(feed)
    wait_paused(place, feed, 600)
    assert feed.absorb(0, 1)
    assert set(place.bronze.commits[-1].partitions) == {0}
