"""What a killed driver leaves is damaged before the next one comes: in processes of their own."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from headgate.cli.main import answer
from tests.oracle import Tables, judge
from tests.support.damage import HARMS, flip_an_id, harm
from tests.support.drivers import run
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.tables import differences, read

pytestmark = pytest.mark.recovery

GOLD = ("bands",)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(120, seed=13), 3))
    return landing


@pytest.fixture
def expected(landing: Landing) -> Tables:
    return judge(landing.records(), rules(gold=GOLD))


@pytest.fixture
def declaration(tmp_path: Path, landing: Landing) -> Path:
    """A file a batch; killed behind bronze's second, which silver has not seen."""
    file = declare(tmp_path, landing.folder, gold=GOLD, max_files_per_batch=1).file
    killed = run(file, tmp_path / "root", failpoint="bronze.committed:3")
    assert killed.was_killed, killed.output
    return file


def test_spark_s_checkpoint(tmp_path: Path, declaration: Path, expected: Tables) -> None:
    """Every file of it, in every way: nothing rests on it."""
    checkpoint = tmp_path / "root/readings/_headgate/checkpoint"
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    assert any("offsets" in str(file) for file in files)
    for file, how in zip(files, cycle(HARMS), strict=False):
        harm(file, how)
    ended = run(declaration, tmp_path / "root")
    assert ended.last_line == "done", ended.output
    assert differences(tmp_path / "root", expected) == {}


def test_a_page_that_a_batch_has_to_read(
    tmp_path: Path, declaration: Path, expected: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark says that a task failed; the driver says which file is damaged, and what repairs it.
    Nothing of the page reaches silver."""
    root = tmp_path / "root"
    silver = read(root, "silver/clean")
    (file, *_) = (root / "readings/bronze/raw/data").glob("0-2-*/*.parquet")
    flip_an_id(file)
    refused = run(declaration, root)
    assert refused.code == 5, refused.output
    assert refused.last_line == "DamagedFileError"
    assert f"{file} cannot be read" in refused.output
    assert "headgate repair PIPELINE --dry-run" in refused.output
    assert read(root, "silver/clean") == silver

    assert answer(["repair", str(declaration), "--root", str(root)]) == 0
    assert "bronze/raw: given back batch 1" in capsys.readouterr().out
    ended = run(declaration, root)
    assert ended.last_line == "done", ended.output
    assert differences(root, expected) == {}
