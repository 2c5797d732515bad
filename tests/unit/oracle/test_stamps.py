"""Several records: clocks, duplicates, and what moves the watermark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.oracle import derive
from tests.unit.oracle.rules_of_shop import MINUTE, RULES, arrive, at, column, order

FUTURE = order("f", "23:00")


def test_the_clock_is_stored_only_on_records_out_of_order() -> None:
    values = [order(str(n), clock) for n, clock in enumerate(["10:00", "10:05", "10:03", "10:05"])]
    assert column(derive(arrive(*values), RULES).bronze, "clock") == [None, None, at("10:05"), None]


def test_duplicates_and_failures_with_a_time_move_the_clock() -> None:
    values = [
        order("a", "10:00"),
        order("b", "10:04", amount="wrong type"),
        order("a", "10:06"),  # a duplicate of the first
        b'{"at": "2026-03-01T10:08:00Z"}',  # no id
        order("c", "10:01"),
    ]
    assert column(derive(arrive(*values), RULES).bronze, "clock")[-1] == at("10:08")


def test_futures_and_records_without_a_time_do_not_move_it() -> None:
    values = [order("a", "10:00"), FUTURE, b'{"id": "b"}', b"?", order("c", "10:01")]
    tables = derive(arrive(*values), RULES)
    assert column(tables.bronze, "clock") == [None] * 5
    assert tables.clock == at("10:01")


def test_a_record_without_a_time_has_no_clock() -> None:
    tables = derive(arrive(order("a", "10:00"), b'{"id": "b", "at": "?"}'), RULES)
    assert column(tables.bronze, "clock", "reason")[1] == (None, "unparsable_time")


def test_each_partition_has_its_own_clock() -> None:
    ahead = arrive(order("a", "10:30"), order("b", "10:29"), partition=0)
    behind = arrive(order("c", "10:10"), order("d", "10:09"), partition=1)
    tables = derive([*behind, *ahead], RULES)
    assert column(tables.bronze, "event_id", "clock") == [
        ("a", None),
        ("b", at("10:30")),
        ("c", None),
        ("d", at("10:10")),
    ]
    assert tables.clock == at("10:10")


def test_a_partition_without_a_clock_holds_the_closing_clock() -> None:
    records = arrive(order("a", "10:30"))
    assert derive(records, RULES, partitions=[0, 1]).clock is None
    assert derive(records, RULES, partitions=[0]).clock == at("10:30")
    assert derive([*records, *arrive(b"?", partition=1)], RULES).clock is None
    assert derive([], RULES).clock is None


def test_a_copy_near_in_event_time_is_a_duplicate() -> None:
    values = [order("a", clock) for clock in ["10:00", "10:10", "10:20:00.000001", "09:59"]]
    tables = derive(arrive(*values), RULES)
    assert column(tables.bronze, "duplicate") == [False, True, False, True]
    assert column(tables.silver["orders"], "_offset") == [0, 2]


def test_nothing_is_a_duplicate_where_duplicates_are_not_declared() -> None:
    tables = derive(arrive(order("a", "10:00"), order("a", "10:00")), replace(RULES, within=None))
    assert tables.counts["duplicate"] == 0


def test_copies_in_other_partitions_are_not_compared() -> None:
    one, other = arrive(order("a", "10:00")), arrive(order("a", "10:00"), partition=1)
    assert derive(one + other, RULES).counts["duplicate"] == 0


def test_futures_and_missing_ids_are_never_duplicates() -> None:
    no_id = b'{"at": "2026-03-01T10:00:00Z"}'
    tables = derive(arrive(FUTURE, FUTURE, no_id, no_id, b"?", b"?"), RULES)
    assert column(tables.bronze, "duplicate") == [False] * 6
    assert len(tables.quarantine) == 6


def test_only_a_record_that_conforms_makes_its_id_known() -> None:
    bad, good = order("a", "10:00", amount="x"), order("a", "10:00")
    tables = derive(arrive(bad, bad, good, bad, good), RULES)
    assert column(tables.bronze, "duplicate", "reason") == [
        (False, "wrong_type"),
        (False, "wrong_type"),
        (False, None),
        (True, "wrong_type"),
        (True, None),
    ]
    assert column(tables.silver["orders"], "_offset") == [2]
    assert tables.counts | {"silver": 0, "filtered": 0, "suites": 0, "gold": 0} == {
        "read": 5,
        "duplicate": 2,
        "differing": 1,
        "corrected": 2,
        "quarantined": 2,
        "conformed": 1,
        "read_bytes": 3 * len(bad) + 2 * len(good),
        "duplicate_bytes": len(bad) + len(good),
        "quarantined_bytes": 2 * len(bad),
        "silver": 0,
        "filtered": 0,
        "suites": 0,
        "exploded": {},
        "gold": 0,
    }


@pytest.mark.parametrize(
    ("differing", "duplicates", "reasons", "counted"),
    [
        ("warn", [False, True, True, True], [None] * 4, 1),
        ("keep", [False, False, True, True], [None] * 4, 0),
        ("quarantine", [False, False, True, True], [None, "differing_duplicate", None, None], 0),
    ],
)
def test_a_copy_that_differs(
    differing: str, duplicates: list[bool], reasons: list[str | None], counted: int
) -> None:
    first, other = order("a", "10:00", amount=1), order("a", "10:00", amount=2)
    tables = derive(arrive(first, other, other, first), replace(RULES, differing=differing))
    assert column(tables.bronze, "duplicate") == duplicates
    assert column(tables.bronze, "reason") == reasons
    assert tables.counts["differing"] == counted


@pytest.mark.parametrize(
    ("times", "corrected"),
    [
        (["10:00"], 0),  # it conforms, but is out of reach
        (["10:01:59"], 1),
        (["10:02:59", "10:01:59"], 0),  # a duplicate of a copy that is out of reach
        (["10:03:30", "10:01:59", "10:01:01"], 1),
        (["10:01:59", "10:00:05"], 1),  # counted once, though both are accepted
    ],
)
def test_the_first_conforming_copy_corrects_unless_it_is_a_duplicate(
    times: list[str], corrected: int
) -> None:
    values = [order("a", "10:01:01", amount="x"), *(order("a", time) for time in times)]
    tables = derive(arrive(*values), replace(RULES, within=MINUTE))
    assert tables.counts["corrected"] == corrected


@pytest.mark.parametrize("differing", ["keep", "quarantine"])
def test_what_failed_after_its_id_was_known_is_not_corrected(differing: str) -> None:
    values = [order("a", "10:00"), order("a", "10:00", amount="x"), order("a", "10:00", amount=2)]
    tables = derive(arrive(*values), replace(RULES, differing=differing))
    assert tables.counts["corrected"] == 0


def test_wrong_type_comes_before_differing_duplicate() -> None:
    values = [order("a", "10:00"), order("a", "10:00", amount="x")]
    tables = derive(arrive(*values), replace(RULES, differing="quarantine"))
    assert column(tables.quarantine, "reason", "column") == [("wrong_type", "amount")]


def test_a_copy_that_differs_is_compared_with_near_ones_only() -> None:
    values = [order("a", "10:00", amount=1), order("a", "10:11", amount=2)]
    far = values[1].replace(b"10:11", b"10:00") + b" "
    tables = derive(arrive(values[0], values[1], far), replace(RULES, within=MINUTE))
    assert column(tables.bronze, "duplicate") == [False, False, True]
    assert tables.counts["differing"] == 1


def test_quarantine_rows_keep_the_bytes() -> None:
    tables = derive(arrive(b"\xff\x00 not JSON"), RULES)
    assert tables.quarantine == [
        {
            "partition": 0,
            "offset": 0,
            "reason": "unparsable",
            "column": None,
            "table": None,
            "value": b"\xff\x00 not JSON",
        }
    ]
