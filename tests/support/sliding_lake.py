"""A lake with the gold table ``sliding``, for tests of what is sent; built once per process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.readings import declare

FILES = 3


def begin(spark: SparkSession, folder: Path) -> Engine:
    """FILES files are listed, and none is read."""
    landing = Landing(folder / "landing")
    landing.write_all(split(readings(300, seed=5), FILES))
    engine = Engine(spark, declare(folder, landing.folder, gold=("sliding",)), folder / "root")
    engine.list_new()
    return engine


def go_on(engine: Engine, end: int = FILES) -> None:
    """Read the files up to ``end``, each in a batch of its own."""
    for number in range(engine.position + 1, end + 1):
        engine.ingest(number)
        engine.catch_up()


@pytest.fixture(scope="session")
def first_file(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """The first file is in all tables."""
    engine = begin(spark, tmp_path_factory.mktemp("first_file"))
    go_on(engine, 1)
    return Prepared(engine)


@pytest.fixture(scope="session")
def all_files(first_file: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All files are in all tables."""
    engine = first_file.copy(tmp_path_factory.mktemp("all_files"))
    go_on(engine)
    return Prepared(engine)


def publishing(lake: Prepared, folder: Path, publish: str) -> Engine:
    """A new driver over a copy of a lake, which also publishes. Publications begin with the first
    row of a table."""
    before = lake.engine.root.parent
    shutil.copytree(before, folder, dirs_exist_ok=True)
    file = folder / lake.engine.pipeline.file.name
    text = lake.engine.pipeline.text.replace(str(before), str(folder))
    file.write_text(f"{text}publish:\n{publish}")
    return Engine(lake.engine.spark, load(file), folder / "root")
