"""What `status` and `list` say about the sources of a pipeline."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.inspect.status_screen import checkpoints_document, show_checkpoints
from headgate.driver.progress import JobProgress
from headgate.insight.status.checkpoints import Checkpoints, _replay, checkpoint_history
from headgate.lake.control.driver_reports import (
    Backlog,
    LagSample,
    PartitionBacklog,
    SourceProgress,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import snapshot
from headgate.supervision.progress_text import progress_line, progress_parts
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources
from tests.support.two_reported import AWAY, CLICKS, FAILED, ORDERS, report_end, report_two
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.supervision.conftest import NOW

two_sources = _two_sources

Shop = tuple[Path, str, Path]


def alive(layout: Layout, clicks: SourceProgress = CLICKS, **more: Any) -> None:
    """The driver has just reported."""
    report_two(layout, clicks, renewed=datetime.now(UTC), **more)


@pytest.fixture
def shop(two_sources: Lake) -> Shop:
    """PIPELINE and --root of the lake of two sources."""
    return two_sources.pipeline.file, "--root", two_sources.root


def test_each_source_has_a_row_below_its_job(ask: Ask, shop: Shop, two_sources: Lake) -> None:
    behind = Backlog("records", 9, partitions={"c/0": PartitionBacklog(9, 61.0)})
    alive(two_sources.layout, replace(CLICKS, backlog=behind))
    code, out, _ = ask("status", *shop)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[1][:2] == ["fused", "running"]
    assert lines[2] == ["clicks", "1", "9", "records", "61", "s", "-"]
    assert lines[3] == ["orders", "3", "none", "2026-05-04", "11:59:40Z"]
    assert ["source", "clicks"] in lines, "the title of its partitions"
    (fresh,) = (line for line in out.splitlines() if line.startswith("gold changed"))
    assert "; orders: watermark not known, last record " in fresh
    assert "; clicks: watermark not known, last record " in fresh


def test_a_source_that_does_not_answer_is_named(ask: Ask, shop: Shop, two_sources: Lake) -> None:
    trouble = "source clicks: the folder is gone"
    alive(two_sources.layout, replace(CLICKS, outage=AWAY), trouble=trouble)
    code, out, _ = ask("status", *shop)
    assert code == 0, "the driver tries again"
    assert ["clicks", "waiting", "1"] in [line.split()[:3] for line in out.splitlines()]
    assert f"fused: {trouble}" in out
    (job,) = last_object(ask("status", *shop, "--json")[1])["jobs"]
    assert (job["sources"]["orders"]["outage"], job["state"]) == (None, "running")
    assert job["sources"]["clicks"]["outage"]["what"] == AWAY.what


def test_a_source_that_fails_needs_a_person(ask: Ask, shop: Shop, two_sources: Lake) -> None:
    trouble = f"source clicks: {FAILED.reason}"
    alive(two_sources.layout, replace(CLICKS, failure=FAILED), trouble=trouble)
    code, out, _ = ask("status", *shop)
    assert code == 3
    assert ["clicks", "failed", "1"] in [line.split()[:3] for line in out.splitlines()]
    assert f"fused: {trouble}" in out
    assert "leave it out: headgate files skip" in out


def test_the_end_of_a_run_shows_the_source_that_it_could_not_read(
    ask: Ask, shop: Shop, two_sources: Lake
) -> None:
    report_end(two_sources.layout)
    code, out, _ = ask("status", *shop)
    assert code == 3
    states = {line.split()[0]: line.split()[1] for line in out.splitlines()[1:4]}
    assert states == {"fused": "failed", "clicks": "failed", "orders": "3"}


def test_the_trend_of_a_backlog_is_that_of_its_source(
    ask: Ask, shop: Shop, two_sources: Lake
) -> None:
    began = NOW.timestamp()
    samples = tuple(
        LagSample(datetime.fromtimestamp(began + 5 * n, UTC), 100 * n, 50 * n) for n in range(6)
    )
    alive(two_sources.layout, replace(CLICKS, samples=samples))
    assert "source clicks: falling behind by" in ask("status", *shop)[1]
    (job,) = last_object(ask("status", *shop, "--json")[1])["jobs"]
    assert job["sources"]["orders"]["trend"] is None
    assert job["sources"]["clicks"]["trend"]["trend"] == "falling behind"


def test_the_checkpoints_are_those_of_each_source(
    two_sources: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, declared = two_sources.layout, two_sources.pipeline
    at = snapshot(layout, declared)
    bronze, behind = at.bronze, tuple(_replay(at))
    history = {name: checkpoint_history(position, 10) for name, position in bronze.items()}
    reached = {name: position.n for name, position in bronze.items()}
    found = Checkpoints(reached, 0, history, behind, (), ())
    show_checkpoints(found)
    out = capsys.readouterr().out
    assert "checkpoints of orders" in out
    assert "checkpoints of clicks" in out
    assert "after a crash now, from batch 3 of orders and from batch 1 of clicks:" in out
    for table in ("gold/orders_per_minute", "silver/paid"):
        assert f"  {table} processes 1 batch, 2 rows\n" in out
    assert out.count(" processes ") == 2
    sources = checkpoints_document(found)["sources"]
    assert {name: each["n"] for name, each in sources.items()} == {"orders": 3, "clicks": 1}
    assert [each["n"] for each in sources["orders"]["history"]] == [3, 2, 1]
    assert [each["n"] for each in sources["clicks"]["history"]] == [1]


def test_list_names_the_source_that_cannot_be_read(
    ask: Ask, two_sources: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(two_sources.layout, replace(CLICKS, failure=FAILED))
    file = two_sources.pipeline.file
    monkeypatch.setattr("headgate.cli.declaration.declarations", lambda: [file])
    out = ask("list", "--root", two_sources.root)[1]
    assert "source clicks: file 7 was rewritten" in out
    (found,) = last_object(ask("list", "--root", two_sources.root, "--json")[1])["pipelines"]
    assert found["unreadable"] == {"clicks": "file 7 was rewritten"}


def test_a_line_of_progress_has_a_part_for_each_source() -> None:
    progress = JobProgress("shop", "fused", 1, NOW, Layout.of("/lake", "shop"))
    progress.sources = {
        "orders": replace(ORDERS, quarantined=2),
        "clicks": replace(CLICKS, set_aside=1, quarantined=3),
    }
    assert "clicks: batch 1, backlog 2 files 2.0 KB, watermark -, files set aside 1" in (
        progress_parts(progress, NOW)
    )
    assert progress_line(progress, NOW) == (
        "12:00:00  read 0  orders: batch 3, backlog none, watermark 2026-05-04 11:59:40  "
        "clicks: batch 1, backlog 2 files 2.0 KB, watermark -, files set aside 1  "
        "late 0  quarantined 5  gold -"
    )
    progress.job = "gold"
    assert progress_line(progress, NOW).startswith("12:00:00  gold  orders: batch 3, ")
