"""A driver removes what killed drivers that it has fenced left behind, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.driver.scratch import job_name, remove_orphaned, scratch_folder
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout

FOLDERS = {("fused", 2), ("fused", 5), ("fused", 9), ("bronze", 1), ("bronze", 7), ("silver", 3)}


@pytest.mark.parametrize(
    ("layers", "kept"),
    [
        (LAYERS, {("fused", 5), ("fused", 9), ("bronze", 7)}),
        (("bronze",), FOLDERS - {("bronze", 1)}),
        (("silver",), FOLDERS - {("silver", 3)}),
        (("gold",), FOLDERS),
    ],
)
def test_of_the_own_layers_and_of_lower_epochs(
    tmp_path: Path, layers: tuple[str, ...], kept: set[tuple[str, int]]
) -> None:
    layout = Layout.of(str(tmp_path), "p")
    for job, epoch in FOLDERS:
        inside = scratch_folder(layout, job, epoch) / "spark/offsets"
        inside.mkdir(parents=True)
        (inside / "0").write_text("v1")
    odd = scratch_folder(layout, "fused", 1).with_name("my-notes")
    odd.mkdir()
    remove_orphaned(layout, layers, 5)
    assert odd.exists()
    assert {f for f in FOLDERS if scratch_folder(layout, *f).exists()} == kept


def test_where_nothing_was_left(tmp_path: Path) -> None:
    remove_orphaned(Layout.of(str(tmp_path), "p"), LAYERS, 5)
    assert list(tmp_path.iterdir()) == []


def test_a_job_is_called_after_its_layers() -> None:
    assert [job_name(layers) for layers in (LAYERS, ("silver",))] == ["fused", "silver"]
