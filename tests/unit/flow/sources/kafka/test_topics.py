"""Every partition has one number, which is assigned once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.kafka.topics import (
    Topic,
    TopicListing,
    decoded_offsets,
    encoded_offsets,
    enrolled,
    label_of,
    partition_of,
    partitions,
)

NAMES = st.sampled_from(["a", "b", "c", "a@b", "a.b-c_d"])
LISTINGS = st.lists(
    st.dictionaries(NAMES, st.tuples(st.integers(0, 3), st.integers(1, 70))), max_size=8
)


def topics(listed: dict[str, tuple[int, int]]) -> list[Topic]:
    return [Topic(name, f"id{which}", size) for name, (which, size) in listed.items()]


@pytest.mark.slow
@given(LISTINGS)
def test_a_number_means_one_partition_for_ever(
    listings: list[dict[str, tuple[int, int]]],
) -> None:
    known: tuple[str, ...] = ()
    meant: dict[int, tuple[str, str, int]] = {}
    for listed in listings:
        before, known = known, enrolled(known, topics(listed))
        assert known[: len(before)] == before
        for number, partition in partitions(known, topics(listed)).items():
            which = f"id{listed[partition.topic][0]}"
            told = (partition.topic, which, partition.partition)
            assert meant.setdefault(number, told) == told
            assert label_of(known, number) == f"{partition.topic}@{which}"
            assert partition_of(known, number) == partition
    assert len(set(meant.values())) == len(meant)
    assert len(set(known)) == len(known)


def test_one_topic_has_kafkas_own_numbers() -> None:
    topic = Topic("bids", "x", 100)
    assert list(partitions(enrolled((), [topic]), [topic])) == list(range(100))


def test_new_topics_are_met_by_name_whatever_the_order_of_the_answer() -> None:
    found = [Topic("b", "2", 1), Topic("a", "1", 1)]
    assert enrolled((), found) == enrolled((), found[::-1]) == ("a@1", "b@2")
    assert enrolled(("b@2",), found) == ("b@2", "a@1")


def test_a_listing_says_where_reading_continues_and_what_is_there() -> None:
    names = ("old@1", "new@2")
    parts = partitions(names, [Topic("new", "2", 2)])
    second = 1 << 16
    listing = TopicListing(names, parts, {second: 9, second + 1: 9}, {second + 1: 4})
    assert listing.position({0: 7, second: 5}) == {second: 5, second + 1: 4}
    assert listing.labels == {"new@2"}


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**62)))
def test_offsets_survive_a_commit(offsets: dict[int, int]) -> None:
    assert decoded_offsets(encoded_offsets(offsets)) == offsets
    assert all(isinstance(key, str) for key in encoded_offsets(offsets))
