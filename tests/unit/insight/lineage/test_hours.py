"""Which hours are due, and whether anything is sent at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.insight.lineage.emitting import is_configured, namespace
from headgate.insight.lineage.hours import MOST, due

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_hours_are_sent_one_by_one() -> None:
    assert due(NOON, NOON) == []
    assert due(NOON - 2 * HOUR, NOON) == [(NOON - 2 * HOUR, NOON - HOUR), (NOON - HOUR, NOON)]


def test_at_first_only_the_last_hour_is_sent() -> None:
    assert due(None, NOON) == [(NOON - HOUR, NOON)]


def test_what_is_long_due_is_sent_as_one() -> None:
    first, *rest = due(NOON - 1000 * HOUR, NOON)
    assert first == (NOON - 1000 * HOUR, NOON - MOST * HOUR)
    assert len(rest) == MOST
    assert [begin for begin, _ in rest] == [first[1], *(end for _, end in rest[:-1])]
    assert rest[-1][1] == NOON


def test_nothing_is_due_after_tables_have_gone_back() -> None:
    """After a restore, hours that become final again were sent before."""
    assert due(NOON + 3 * HOUR, NOON) == []


@pytest.mark.parametrize(
    ("environment", "configured"),
    [
        ({}, False),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:5000"}, True),
        ({"OPENLINEAGE_URL": ""}, False),
        ({"OPENLINEAGE_CONFIG": "/etc/openlineage.yml"}, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "file"}, True),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:5000", "OPENLINEAGE_DISABLED": "True"}, False),
        ({"OPENLINEAGE_NAMESPACE": "shop"}, False),
    ],
)
def test_the_standard_variables_say_whether_lineage_is_sent(
    environment: dict[str, str], configured: bool
) -> None:
    assert is_configured(environment) == configured


def test_jobs_have_a_namespace() -> None:
    assert namespace({}) == "headgate"
    assert namespace({"OPENLINEAGE_NAMESPACE": "shop"}) == "shop"
