"""Which late rows wait because a published backfill has corrected their results."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.cli import late_corrected
from headgate.cli.late_corrected import left_out, require_not_corrected
from headgate.flow.operations.late_replay import replay_document
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import commit_time
from tests.support.decisions import append, at
from tests.unit.cli.conftest import AT
from tests.unit.insight.ledger.conftest import NOON, Lake

MINUTE = 60_000_000
BEGIN = commit_time(NOON)


def commit(lake: Lake, **changes: Any) -> None:
    gold = lake.table("gold/per_minute")
    state = gold.refresh().held("operation", gold.epoch)
    payload = replace(GoldPayload.of(state), **changes)
    gold.commit(replace(state, payload=payload, operation=state.operation + 1))


def test_the_last_backfill_around_a_result_has_corrected_it() -> None:
    payload = GoldPayload(backfills={"2": (0, 10), "11": (5, 20), "3": (5, 5)})
    assert [payload.corrected_by(begin) for begin in (4, 5, 21)] == ["2", "11", None]
    assert payload.corrected([(4, 9), (2, 7), (20, 25), (21, 26)]) == {"2": (2, 9), "11": (20, 25)}


def test_what_was_left_out_is_named_by_its_backfill(lake: Lake) -> None:
    assert [*left_out(lake.pipeline, lake.layout)] == []
    document = {"backfill": "b1", "tables": {}, "generation": 0}
    append(lake.control, "backfill", document, at(events=2), AT)
    noted = {"operation": 4, "first": BEGIN, "end": BEGIN + MINUTE}
    commit(lake, backfills={"1": (BEGIN, BEGIN)}, left_out={"1": noted})
    (found,) = left_out(lake.pipeline, lake.layout)
    assert (found.table, found.backfill, found.operation) == ("per_minute", "b1", 4)
    assert (found.first, found.end) == (NOON, datetime(2026, 5, 4, 12, 1, tzinfo=UTC))
    assert "backfill b1 has corrected results from 2026-05-04 12:00:00Z" in found.why
    assert found.document()["end"] == "2026-05-04T12:01:00+00:00"


@pytest.mark.parametrize(("first", "is_asked"), [(BEGIN, True), (BEGIN + MINUTE, False)])
def test_spark_starts_only_for_late_rows_in_the_range_of_a_backfill(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, first: int, *, is_asked: bool
) -> None:
    """The lake has a late row in the window that begins at noon."""

    class AskedError(Exception):
        pass

    def require_java() -> None:
        raise AskedError

    monkeypatch.setattr(late_corrected, "require_java", require_java)
    table, wanted = lake.pipeline.gold["per_minute"], replay_document("per_minute")
    require_not_corrected(lake.pipeline, lake.layout, table, wanted)
    commit(lake, backfills={"1": (first, first + MINUTE)})
    if is_asked:
        with pytest.raises(AskedError):
            require_not_corrected(lake.pipeline, lake.layout, table, wanted)
    else:
        require_not_corrected(lake.pipeline, lake.layout, table, wanted)
