"""What commands say about joins."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from headgate.cli.backfill.verb import asked_of
from headgate.cli.late import selection
from headgate.errors import UsageError
from headgate.flow.gates.documents import Hold
from headgate.insight.status.held_versions import rejectable
from headgate.lake.storage.layout import Layout
from tests.support.joins import FOLD, ROLLUP, declared

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_a_backfill_leaves_joins_out_and_refuses_them_by_name() -> None:
    pipeline = declared(more=FOLD + ROLLUP)
    assert asked_of(pipeline, None, "2026-05-01", None, None, NOW).tables == ("per_hour",)
    with pytest.raises(UsageError, match=r"gold\.bought cannot be backfilled yet") as refused:
        asked_of(pipeline, ["gold.bought"], "2026-05-01", None, None, NOW)
    assert "--full-refresh gold.bought" in refused.value.remedy
    with pytest.raises(UsageError, match=r"gold\.paid_per_day reads gold\.bought"):
        asked_of(pipeline, ["paid_per_day"], "2026-05-01", None, None, NOW)


def test_a_pipeline_without_windows_has_no_backfill() -> None:
    with pytest.raises(UsageError, match="shop has no table that can be backfilled"):
        asked_of(declared(), None, "2026-05-01", None, None, NOW)


def test_rows_that_a_gate_holds_are_kept_out_of_both_silver_tables(tmp_path: Path) -> None:
    layout, held = Layout.of(str(tmp_path), "shop"), Hold("bought", 1, 2, NOW, NOW, ())
    with pytest.raises(UsageError, match="events are not given up") as refused:
        rejectable(declared(), layout, held)
    for table in ("clicks", "purchases"):
        assert f"headgate run PIPELINE --full-refresh silver.{table}⟧" in refused.value.remedy


def test_late_rows_of_a_join_have_no_key() -> None:
    with pytest.raises(typer.BadParameter, match="has no column 'user' in by; there are: none"):
        selection(declared().gold["bought"], None, None, ["user=ann"])
