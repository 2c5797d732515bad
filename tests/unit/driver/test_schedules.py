"""When late rows are replayed without a person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import LateSchedule
from headgate.driver.schedules import CHECK_EVERY, ScheduledLateReplays, is_replay_due
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.state import commit_time
from tests.support.charted import DECLARATION

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAILY = LateSchedule(timedelta(days=1), timedelta(days=30))


def document(table: str, hours_ago: float, by: str = "schedule") -> dict[str, object]:
    return {"table": table, "by": by, "at": commit_time(NOON - timedelta(hours=hours_ago))}


@pytest.mark.parametrize(
    ("documents", "due"),
    [
        ([], True),
        ([document("sales", 23.9)], False),
        ([document("sales", 24)], True),
        ([document("sales", 50), document("sales", 1)], False),
        ([document("sales", 50), document("sales", -1)], True),
        ([document("sales", 1), document("sales", -1)], False),
        ([document("other", 1)], True),
        ([document("sales", 1, by="ann@host")], True),
        ([{"id": "a"}], True),
    ],
    ids=[
        *("first", "too early", "after a day", "the last one counts"),
        *("of a clock that was ahead", "and one of before"),
        *("other", "a person", "drain"),
    ],
)
def test_a_replay_is_due_when_the_last_scheduled_one_is_old_enough(
    documents: list[dict[str, object]], due: bool
) -> None:
    assert is_replay_due("sales", DAILY, documents, [], NOON) is due


@pytest.mark.parametrize(("table", "due"), [("sales", False), ("other", True)])
def test_none_is_due_while_one_is_not_carried_out(table: str, due: bool) -> None:
    """For example, a gate holds the table. Each replay would stay in bronze's commits forever."""
    open_ = [document(table, 50)]
    assert is_replay_due("sales", DAILY, [document("sales", 50)], open_, NOON) is due


def test_tables_are_looked_at_at_once_after_a_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[datetime] = []
    monkeypatch.setattr(ScheduledLateReplays, "_ask", lambda *given: looked.append(given[-1]))
    file = tmp_path / "shop.yml"
    file.write_text(DECLARATION + "    late: {replay_every: 1 day, within: 30 days}\n")
    replays = ScheduledLateReplays(Layout.of(str(tmp_path), "shop"), load(file))
    back = NOON - timedelta(hours=3)
    for now in (NOON, NOON + CHECK_EVERY / 2, back, back + CHECK_EVERY / 2, back + CHECK_EVERY):
        replays.run_due(now)
    assert looked == [NOON, back, back + CHECK_EVERY]
