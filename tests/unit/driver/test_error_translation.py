"""The error of a batch names the damaged table file that it failed on, but not a source's file."""

from __future__ import annotations

import errno
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.driver.error_translation import translate_error
from headgate.driver.errors import JavaDiedError, PlanError
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import DamagedFileError, FencedError, LogGapError


def spark_says(file: Path) -> Exception:
    return RuntimeError(
        "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: "
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file://{file}.\n"
        "Caused by: java.io.IOException: could not verify page checksum"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lake/tiny/silver/good/data/0-1-abc/part-0.parquet"
    path.parent.mkdir(parents=True)
    table = pa.table({"id": list(range(500))})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    return path


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path / "lake"), "tiny")


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)


def test_a_flipped_page(file: Path, layout: Layout) -> None:
    flip(file)
    error = translate_error(spark_says(file), layout)
    assert isinstance(error, DamagedFileError)
    assert str(file) in error.message
    assert "headgate repair" in error.remedy
    assert error.exit_code == 5


def test_deep_in_the_chain(file: Path, layout: Layout) -> None:
    file.unlink()
    error = ValueError("a batch failed")
    error.__cause__ = spark_says(file)
    known = translate_error(error, layout)
    assert known is not None
    assert known.message == f"{file} is missing"


def test_a_sound_file_is_not_blamed(file: Path, layout: Layout) -> None:
    assert translate_error(spark_says(file), layout) is None


def test_a_source_file_is_not_ours(file: Path, layout: Layout, tmp_path: Path) -> None:
    landed = tmp_path / "landing/1.parquet"
    landed.parent.mkdir()
    flip(file)
    file.rename(landed)
    assert translate_error(spark_says(landed), layout) is None


def test_spark_s_own_checkpoint(layout: Layout) -> None:
    place = layout.storage.uri("_headgate/checkpoint/fused-3/spark/offsets/7")
    error = translate_error(
        FileNotFoundError(f"[Errno 2] No such file or directory: '{place}'"), layout
    )
    assert isinstance(error, PlanError)
    assert "start again" in error.remedy


def test_what_says_itself_what_is_wrong(layout: Layout) -> None:
    assert translate_error(LogGapError("a.parquet", "headgate repair"), layout) is None


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "refused"), LogGapError("no answer", "try again")]
)
def test_what_a_jvm_that_died_has_caused(error: Exception, layout: Layout) -> None:
    known = translate_error(error, layout, java_has_ended=True)
    assert isinstance(known, JavaDiedError)
    assert known.exit_code == 7
    assert "headgate logs PIPELINE --spark" in known.text()


def test_a_takeover_matters_more(layout: Layout) -> None:
    fenced = FencedError("another driver has taken the lease", "headgate status")
    assert translate_error(fenced, layout, java_has_ended=True) is None


def test_a_file_that_this_machine_cannot_open_is_not_blamed(
    file: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Storage, "open", refused)
    assert translate_error(spark_says(file), layout) is None
