"""Whether a pipeline with several sources may start: one that cannot be read holds no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.model import Pipeline
from headgate.driver.refusing import require_input, require_unchanged
from headgate.flow.sources.errors import SourceError
from headgate.lake.storage.layout import Layout
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake, declared
from tests.support.several_sources import TWO, ingest, land


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return declared(tmp_path, TWO)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path / "root"), "shop")


def folder_of(pipeline: Pipeline, source: str) -> Path:
    return Path(pipeline.sources[source].reads.path)


@pytest.mark.parametrize("once", [False, True])
def test_a_source_without_its_folder_is_a_remark_if_another_can_be_read(
    pipeline: Pipeline, layout: Layout, once: bool
) -> None:
    folder_of(pipeline, "orders").mkdir(parents=True)
    (remark,) = require_input(pipeline, layout, once=once)
    assert remark.startswith("source clicks: ")
    assert str(folder_of(pipeline, "clicks")) in remark


def test_a_pipeline_without_a_source_that_can_be_read_does_not_start(
    pipeline: Pipeline, layout: Layout
) -> None:
    with pytest.raises(SourceError) as error:
        require_input(pipeline, layout)
    named = [line.partition(": ")[0] for line in error.value.message.splitlines()]
    assert named == ["source orders", "source clicks"]
    assert error.value.exit_code == 3


def test_files_that_have_changed_in_one_source_keep_no_other_from_being_read(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    with without_spark():
        lake = Lake(pipeline, tmp_path / "root")
        for source in ("orders", "clicks"):
            land(lake, source, [Record(0)], [Record(1)])
    require_unchanged(pipeline, lake.layout)
    for source in ("orders", "clicks"):
        (folder_of(pipeline, source) / "001.json").write_text("{}\n")
        if source == "orders":
            require_unchanged(pipeline, lake.layout, once=True)
    with pytest.raises(SourceError, match=r"source clicks: .*001\.json"):
        require_unchanged(pipeline, lake.layout)
    with without_spark():
        ingest_is_refused(lake)


def ingest_is_refused(lake: Lake) -> None:
    """The driver holds both."""
    for source in ("orders", "clicks"):
        with pytest.raises(AssertionError):
            ingest(lake, source)
        assert lake.sources[source].failure is not None
