"""Figures by window, from literal tables."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.insight.dashboard.errors import BadQuestionError
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.selection import selection
from headgate.insight.dashboard.questions.series import SeriesQuestion, grouping, series
from headgate.insight.dashboard.questions.view import GoldView
from tests.support.charted import NOON, Charted, late_sale, sale

START = NOON.timestamp()


def asked(
    shop: Charted,
    reader: Reader,
    figure: str,
    by: str | None = None,
    width: int = 100,
    top: int = 5,
    **given: Any,
) -> dict[str, Any]:
    view = GoldView.of(reader, shop.shown(), "sales")
    known = view.facts
    question = SeriesQuestion(
        figure=known.figure(figure),
        by=grouping(known, known.figure(figure), by),
        selection=selection(known, [(n.replace("__", "."), v) for n, v in given.items()]),
        width=width,
        top=top,
    )
    return series(view, question)


def lines(found: dict[str, Any]) -> dict[str, list[float | None]]:
    return {line["label"]: line["v"] for line in found["series"]}


def test_sums_are_over_all_keys(still: Charted, reader: Reader) -> None:
    found = asked(still, reader, "orders")
    assert found["t"] == [START, START + 60, START + 120, START + 180]
    assert lines(found) == {"": [6, 6, 3, 1]}
    assert (found["step"], found["per_point"], found["by"]) == (60, 1, ())


def test_replayed_rows_are_not_marked(shop: Charted, reader: Reader) -> None:
    shop.add("late/sales", [late_sale(2, "app", 9.0, replayed=3), late_sale(3, "app", 9.0)], late=2)
    assert asked(shop, reader, "orders")["late"] == [1, 1, 0, 1]


def test_open_late_and_revised_windows_are_marked(still: Charted, reader: Reader) -> None:
    found = asked(still, reader, "orders")
    assert found["open"] == [0, 0, 0, 1]
    assert found["late"] == [1, 1, 0, 0]
    assert found["revised"] == [0, 1, 0, 0]


def test_a_maximum_stays_one_over_keys(still: Charted, reader: Reader) -> None:
    assert lines(asked(still, reader, "largest")) == {"": [40, 60, 30, 5]}


def test_a_window_without_a_row_is_a_gap(still: Charted, reader: Reader) -> None:
    found = asked(still, reader, "revenue", by="channel")
    assert lines(found) == {"app": [40, 60, None, 5], "web": [10, None, 30, None]}


def test_an_average_has_a_line_for_each_key(still: Charted, reader: Reader) -> None:
    """The mean of the keys' means is not the mean of all rows."""
    found = asked(still, reader, "typical")
    assert found["across"] is None
    assert found["by"] == ("channel",)
    assert lines(found)["web"] == [5, None, 10, None]


def test_the_greatest_keys_are_drawn(still: Charted, reader: Reader) -> None:
    assert list(lines(asked(still, reader, "orders", by="channel", top=1))) == ["app"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"key__channel": "web"}, [2, None, 3]),
        ({"last": "120"}, [3, 1]),
        ({"from": "2026-05-04T12:01Z", "to": "2026-05-04T12:03Z"}, [6, 3]),
        ({"from": "2030-01-01T00:00Z"}, None),
        ({"key__channel": "' OR 1=1 --"}, None),
        ({"null__channel": "1"}, None),
    ],
)
def test_rows_are_chosen(
    shop: Charted, reader: Reader, given: dict[str, Any], expected: list[float] | None
) -> None:
    found = lines(asked(shop, reader, "orders", **given))
    assert found == ({} if expected is None else {"": expected})


def test_many_windows_become_few_points(shop: Charted, reader: Reader) -> None:
    shop.sell(final=[sale(10 + each, "app", each, "1.00") for each in range(1000)])
    found = asked(shop, reader, "orders", width=100)
    (line,) = found["series"]
    assert found["per_point"] == 11
    assert len(found["t"]) == len(line["v"]) <= 100
    # The last whole point: windows 990 to 1000 after noon have 980 to 990 orders.
    assert (line["low"][90], line["v"][90], line["high"][90]) == (980, 985, 990)
    assert sum(found["late"]) == 2, "no late row is lost"


def test_null_is_a_key(shop: Charted, reader: Reader) -> None:
    shop.sell(final=[sale(4, None, 9, "1.00")])
    assert lines(asked(shop, reader, "orders", by="channel"))["null"][-1] == 9
    assert lines(asked(shop, reader, "orders", null__channel="1")) == {"": [9]}


def test_labels_are_harmless_text(shop: Charted, reader: Reader) -> None:
    shop.sell(final=[sale(4, "\u202egnp.exe", 9, "1.00")])
    assert "\\u202egnp.exe" in lines(asked(shop, reader, "orders", by="channel"))


def test_an_empty_table_has_no_points(tmp_path: Any, reader: Reader) -> None:
    found = asked(Charted(tmp_path), reader, "orders")
    assert (found["t"], found["series"]) == ([], [])


@pytest.mark.parametrize(
    ("figure", "given", "says"),
    [
        ("nothing", {}, "has no number called 'nothing'"),
        ("orders", {"key__x": "1"}, "has no key 'x'"),
        ("orders", {"from": "soon"}, "must be a time"),
        ("orders", {"last": "-1"}, "must be a whole number"),
        ("orders", {"last": "9" * 400}, "must be a whole number"),
    ],
)
def test_wrong_questions(
    shop: Charted, reader: Reader, figure: str, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadQuestionError, match=says):
        asked(shop, reader, figure, **given)
