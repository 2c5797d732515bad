"""Every part of a pipeline's folder is damaged, under the real engine: a driver either continues
correctly or fails with an error that names the damage. After `headgate repair`, or after the
command that it prints, the tables equal the oracle's."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.cli.main import answer
from headgate.declaration.load import load
from headgate.driver.error_translation import translate_error
from headgate.driver.lease import Lease
from headgate.errors import HeadgateError
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import DECISIONS
from tests.oracle import Tables, derive
from tests.support.damage import HARMS, harm
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("sliding",)
FILES = 5
READ = 4
TABLES = (
    "bronze/raw",
    "quarantine/raw",
    "silver/strong",
    "late/sliding",
    "gold/sliding",
    "_headgate/files/raw",
)
GIVEN = ("bronze/raw", "_headgate/files/raw")
"""Tables that are built from no other one."""
CHECKPOINTED = ("bronze/raw", "gold/sliding")
NO_ALARM = "nothing is damaged"


@dataclass(frozen=True)
class Variant:
    """``part`` of ``table``: entry (the last one with a batch), first (entry), checkpoint, hint or
    data. If ``part`` is document, ``table`` is the document's name."""

    part: str
    table: str
    how: str

    def __str__(self) -> str:
        return f"{self.part}-{self.table}-{self.how}"

    def file(self, root: Path) -> Path:
        folder = root / "readings" / self.table
        log = folder / "_delta_log"
        if self.part == "document":
            return next((root / "readings/_headgate").glob(f"{self.table}.json"))
        if self.part == "hint":
            return log / "_last_checkpoint"
        if self.part == "checkpoint":
            return max(log.glob("*.checkpoint.parquet"))
        if self.part == "entry":
            return max(p for p in log.glob("*.json") if '"kind":"data"' in p.read_text())
        if self.part == "first":
            return min(log.glob("*.json"))
        actions = pa.table(DeltaTable(str(folder)).get_add_actions())
        paths: list[str] = actions.column("path").to_pylist()
        return max(folder / path for path in paths)


def every_variant() -> Iterator[Variant]:
    for table, how in product(TABLES, HARMS):
        yield Variant("entry", table, how)
        yield Variant("data", table, how)
        yield Variant("first", table, how)
    for how in HARMS:  # there is no decision
        yield Variant("first", DECISIONS, how)
    for table, how in product(CHECKPOINTED, HARMS):
        yield Variant("checkpoint", table, how)
        yield Variant("hint", table, how)
    for name, how in product(("lease-bronze", "pause", "savepoints/*"), HARMS):
        yield Variant("document", name, how)


def in_short() -> Iterator[Variant]:
    """What only Spark's own stages show: Spark names the file of a bad page or footer, and each
    stage builds again what was damaged. tests/unit/repair covers the rest, without Spark."""
    yield Variant("data", "bronze/raw", "flipped")
    yield Variant("first", "bronze/raw", "emptied")
    yield Variant("first", DECISIONS, "truncated")
    yield Variant("data", "silver/strong", "truncated")
    yield Variant("data", "quarantine/raw", "emptied")
    yield Variant("entry", "late/sliding", "truncated")
    yield Variant("entry", "gold/sliding", "flipped")
    yield Variant("checkpoint", "gold/sliding", "emptied")
    yield Variant("entry", "_headgate/files/raw", "missing")


VARIANTS = sorted(set(every_variant() if IN_FULL else in_short()), key=str)


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(150, seed=5), FILES))
    return landing


@pytest.fixture(scope="module")
def expected(landing: Landing) -> Tables:
    return derive(landing.records(), rules(gold=GOLD))


@pytest.fixture(scope="module")
def prepared(
    spark: SparkSession, landing: Landing, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Four of five files are read, the last of them only to bronze; a savepoint follows the
    second."""
    folder = tmp_path_factory.mktemp("prepared")
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    engine.list_new()
    for end in range(1, READ + 1):
        engine.ingest(end)
        if end < READ:
            engine.catch_up()
        if end == 2:
            engine.savepoint()
            for table in CHECKPOINTED:
                DeltaTable(str(folder / "root/readings" / table)).create_checkpoint()
    lease = Lease(engine.layout, LAYERS, "readings")
    lease.take()
    lease.release()
    assert answer(["pause", str(folder / "readings.yml"), "--root", str(folder / "root")]) == 0
    return folder


def way_back(place: Sequence[str], said: str) -> Path:
    """Do what the last line of a refusal says. Returns the root with the tables then."""
    words = shlex.split(said.splitlines()[-1].partition("headgate ")[2])
    command = words[: next(i for i, word in enumerate(words) if word.endswith(".yml"))]
    options = words[len(command) :]
    assert answer([*command, *options]) == 0 if command != ["run"] else True
    if command == ["run"]:
        return Path(options[-1])
    return Path(options[options.index("--to") + 1]) if "--to" in options else Path(place[-1])


def go_on(spark: SparkSession, folder: Path, root: Path | None = None) -> HeadgateError | None:
    """Run a new driver over all input. Returns the error that it would report, or None."""
    pipeline, root = load(folder / "readings.yml"), root or folder / "root"
    try:
        engine = Engine(spark, pipeline, root)
        engine.list_new()
        if engine.last_sequence > engine.position:
            engine.ingest()
        engine.catch_up()
    except HeadgateError as error:
        return error
    except (PySparkException, Py4JError) as error:
        if (known := translate_error(error, Layout.of(str(root), "readings"))) is None:
            raise
        return known
    return None


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_damage_is_refused_by_name_or_gone_on_from_exactly(
    spark: SparkSession,
    tmp_path: Path,
    prepared: Path,
    expected: Tables,
    variant: Variant,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(prepared, tmp_path / "here")
    harm(variant.file(folder / "root"), variant.how)

    refusal = go_on(spark, folder)
    if refusal is not None:
        assert refusal.exit_code == 5
        assert "headgate repair PIPELINE" in refusal.remedy
        assert variant.table.rpartition("/")[2] in refusal.message
    place = [str(folder / "readings.yml"), "--root", str(folder / "root")]
    said = answer(["repair", *place])
    out, err = capsys.readouterr()
    root = folder / "root"
    if said == 0:
        assert refusal is None or NO_ALARM not in out
    else:
        assert said == 5
        assert variant.table in GIVEN
        assert NO_ALARM not in out
        root = way_back(place, err)
    if refusal is not None or NO_ALARM not in out:
        assert go_on(spark, folder, root) is None
    assert differences(root, expected) == {}
    pipeline = load(folder / "readings.yml")
    layout = Layout.of(str(root), "readings")
    assert balance(layout, pipeline).balanced
    assert by_id(layout, pipeline).holds
