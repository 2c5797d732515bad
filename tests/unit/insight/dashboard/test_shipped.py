"""The dashboards that ship with the demo and the project of ``headgate init``."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.declaration import example
from headgate.declaration.load import load
from headgate.insight.dashboard.boards.binding import bound
from headgate.insight.dashboard.boards.reading import board_files, read_board
from headgate.setup.demo import project
from headgate.setup.scaffold.project import create_project


@pytest.mark.slow
@pytest.mark.parametrize("name", ["auctions", "auctions_kafka"])
def test_the_demos_dashboard_is_right(tmp_path: Path, name: str) -> None:
    servers = "127.0.0.1:1" if name == "auctions_kafka" else None
    declared = load(project.make(tmp_path, example(name), servers))
    (file,) = board_files(tmp_path)
    assert len(read_board(file, {declared.name: declared}, bound).charts) == 6


def test_the_shops_dashboard_is_right(tmp_path: Path) -> None:
    create_project(tmp_path)
    declared = load(tmp_path / "pipelines/shop.yml")
    (file,) = board_files(tmp_path)
    assert len(read_board(file, {"shop": declared}, bound).charts) == 6
