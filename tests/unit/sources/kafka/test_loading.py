"""Ranges of topics that a person names."""

from __future__ import annotations

import pytest

from headgate.sources.errors import SourceError
from headgate.sources.kafka.loading import Named, require_once
from headgate.sources.kafka.topics import Partition


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("orders", Named("orders")),
        ("a.b-c_d/3", Named("a.b-c_d", 3)),
        ("orders/0:17-4711", Named("orders", 0, 17, 4711)),
    ],
)
def test_what_is_named(text: str, named: Named) -> None:
    assert Named.parse(text) == named


@pytest.mark.parametrize(
    "text", ["", "orders/", "orders/x", "orders:1-2", "a/b/c", "o/1:2", "o/1:2-"]
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(SourceError, match="is not a range of a topic"):
        Named.parse(text)


def test_a_topic_has_its_partitions() -> None:
    first, second = (Partition("orders", number, number) for number in (0, 1))
    assert Named("orders").has(first)
    assert Named("orders", 1).has(second)
    assert not Named("orders", 1).has(first)
    assert not Named("other").has(first)


@pytest.mark.parametrize("text", ["orders/0:5-5", "orders/0:1000-0"])
def test_a_range_without_records(text: str) -> None:
    with pytest.raises(SourceError, match="has no records: it ends before"):
        Named.parse(text)


def test_a_partition_has_one_range() -> None:
    require_once([Named("orders"), Named("orders", 0, 0, 10), Named("orders", 1, 0, 10)])
    with pytest.raises(SourceError, match="orders/0 is named with 2 ranges"):
        require_once([Named("orders", 0, 0, 10), Named("orders", 0, 20, 30)])
