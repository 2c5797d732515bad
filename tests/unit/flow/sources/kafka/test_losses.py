"""What a topic has lost: offsets compared, each case by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.kafka.losses import Loss, losses, lost_error
from headgate.flow.sources.kafka.topics import Topic, enrolled, partitions

TOPIC = Topic("bids", "one", 2)
NAMES = enrolled((), [TOPIC])
LISTED = partitions(NAMES, [TOPIC])
SECOND = 1 << 16


@pytest.mark.parametrize(
    ("position", "earliest", "latest", "told"),
    [
        ({0: 5, 1: 5}, {0: 0, 1: 0}, {0: 9, 1: 9}, []),
        ({0: 5, 1: 5}, {0: 5, 1: 5}, {0: 5, 1: 5}, []),  # all read, all expired
        ({0: 5}, {0: 0, 1: 8}, {0: 9, 1: 9}, []),  # nothing was read of the second one
        ({0: 5, 1: 5}, {0: 6, 1: 0}, {0: 9, 1: 9}, ["bids/0: offsets 5 to 5 (expired"]),
        (
            {0: 5, 1: 5},
            {0: 1005, 1: 9},
            {0: 2000, 1: 9},
            ["bids/0: offsets 5 to 1,004 (expired", "bids/1: offsets 5 to 8 (expired"],
        ),
        ({0: 5, 1: 5}, {0: 0, 1: 0}, {0: 4, 1: 9}, ["bids/0: offsets 4 to 4 (the log ends before"]),
        ({0: 5, 1: 5}, {0: 0, 1: 0}, {0: 0, 1: 9}, ["bids/0: offsets 0 to 4 (the log ends before"]),
    ],
)
def test_what_is_gone(
    position: dict[int, int], earliest: dict[int, int], latest: dict[int, int], told: list[str]
) -> None:
    found = losses(NAMES, position, LISTED, earliest, latest)
    assert len(found) == len(told)
    assert all(str(loss).startswith(start) for loss, start in zip(found, told, strict=True))
    assert [loss.acceptable for loss in found] == ["ends before" not in start for start in told]


def test_a_topic_that_is_gone_and_one_that_was_made_anew() -> None:
    gone = losses(NAMES, {0: 5, 1: 0}, {}, {}, {})
    assert [str(loss) for loss in gone] == [
        "bids/0: offsets 5 to the end (the topic is gone)",
        "bids/1: offsets 0 to the end (the topic is gone)",
    ]
    anew = Topic("bids", "two", 2)
    names = enrolled(NAMES, [anew])
    listed = partitions(names, [anew])
    # It is longer than the first one, so offsets alone would not show the loss.
    found = losses(names, {0: 5, 1: 0}, listed, dict.fromkeys(listed, 0), dict.fromkeys(listed, 99))
    assert [loss.reason for loss in found] == ["the topic was created again"] * 2
    assert all(loss.acceptable for loss in found)
    # Once the loss was accepted, the partitions of the new topic are compared.
    later = {SECOND: 50, SECOND + 1: 99}
    assert losses(names, later, listed, dict.fromkeys(listed, 60), dict.fromkeys(listed, 99)) == (
        Loss("bids", 0, 50, 60, "expired: the topic kept them no longer"),
    )


def test_the_error_tells_all_of_it_and_what_to_do() -> None:
    expired = Loss("bids", 0, 5, 9, "expired")
    cut = Loss("bids", 1, 5, 9, "cut off", acceptable=False)
    error = lost_error([expired])
    assert "bids/0: offsets 5 to 8" in error.message
    assert "headgate run PIPELINE --accept-gap" in error.remedy
    error = lost_error([expired, cut])
    assert "bids/0" in error.message
    assert "bids/1" in error.message
    assert "--accept-gap" not in error.remedy


@given(
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)),
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)),
)
def test_no_loss_means_that_reading_can_go_on(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    position, first, last = ({0: a, 1: b} for a, b in zip(one, other, strict=True))
    last = {p: max(last[p], first[p]) for p in last}
    found = losses(NAMES, position, LISTED, first, last)
    fine = {p for p in position if first[p] <= position[p] <= last[p]}
    assert {loss.partition for loss in found} == {0, 1} - fine
    assert all(loss.end is not None and loss.first < loss.end for loss in found)
