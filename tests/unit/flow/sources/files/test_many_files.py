"""Many small files in one batch: the effort for each does not depend on how many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow.parquet as pq
import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.bronze.arrivals import arrivals_of_history
from headgate.flow.bronze.batches import Decoding, InDriver
from headgate.flow.bronze.rows import RowShape
from headgate.flow.bronze.sequencing import STAMPS
from headgate.flow.sources.files.intake import FilesIntake
from headgate.flow.sources.files.log import FILES_LOG, FilesLog
from headgate.flow.sources.files.parts import records_of
from headgate.lake.storage.files import Storage
from tests.support.declared import files_of, source_of
from tests.unit.insight.ledger.conftest import DECLARATION

NOW = datetime(2126, 5, 4, tzinfo=UTC)
COLUMNS = ("offset", "value", "event_id", "event_time", "duplicate", "reason")


def ingested(pipeline: Pipeline, folder: Path, files: int) -> int:
    """List, record, read, decode and write so many files. Returns the number of rows."""
    reads = replace(files_of(pipeline), path=str(folder / f"landing-{files}"))
    Path(reads.path).mkdir()
    for number in range(files):
        Path(reads.path, f"{number:05d}.json").write_text(f'{{"id": "e{number}"}}\n')
    log = FilesLog.of(Storage(str(folder / f"lake-{files}")), "tiny", "events")
    log.shape.create(FILES_LOG)
    log.load()
    intake = FilesIntake(replace(source_of(pipeline), reads=reads), log)
    intake.list_new(NOW)
    records = records_of(intake.landing, reads, intake.readable(0, files))
    batch = InDriver(
        Decoding(source_of(pipeline).record, reads.format, "scratch"), records.blocks()
    )
    shape = RowShape(source_of(pipeline).record, COLUMNS)
    stamps = arrivals_of_history(batch.ordered, None).added_to(STAMPS.empty_table())
    batch.write(Storage(str(folder)), "data", shape, stamps)
    intake.readable(0, files)
    log.load()
    return int(pq.read_metadata(folder / "data/part-0.parquet").num_rows)


def effort(run: Callable[[], int]) -> int:
    """How many lines of Headgate's Python are executed."""
    lines = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if "/headgate/" not in frame.f_code.co_filename:
            return None
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "tiny.yml").write_text(DECLARATION)
    return load(tmp_path / "tiny.yml")


def test_twice_as_many_files_are_twice_the_effort(pipeline: Pipeline, tmp_path: Path) -> None:
    assert ingested(pipeline, tmp_path, 2) == 2, "also imports what is imported later"
    one, two = (effort(lambda n=n: ingested(pipeline, tmp_path, n)) for n in (150, 300))  # type: ignore[misc]
    assert two < 2.1 * one


def test_small_files_are_decoded_together(pipeline: Pipeline, tmp_path: Path) -> None:
    """A block costs milliseconds, however few records it has."""
    decoded: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        original = InDriver.__init__

        def noted(self: InDriver, decoding: Decoding, blocks: Any) -> None:
            given = list(blocks)
            decoded.extend(map(len, given))
            original(self, decoding, iter(given))

        patched.setattr(InDriver, "__init__", noted)
        ingested(pipeline, tmp_path, 300)
    assert decoded == [300]
