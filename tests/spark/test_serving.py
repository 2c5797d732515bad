"""The queries of docs/serving.md run as they are written there, over open and final rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.setup.scaffold.project import create_project
from tests.support.drivers import REPOSITORY
from tests.support.engine import Engine
from tests.support.rounds import in_full

pytestmark = pytest.mark.spark

PAGE = (REPOSITORY / "docs/serving.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python|console)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NAMES = ("headgate query", "duckdb", "polars", "to_pandas", "spark", "--at 1", "versions")
ENDS = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
SESSION = """
from pathlib import Path
from tests.support.spark_reader import session
spark = session(Path("scratch").absolute())
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of `headgate init shop`, run: its newest windows are open."""
    folder = tmp_path_factory.mktemp("shop")
    create_project(folder)
    settled = datetime.now(UTC) + timedelta(minutes=1)
    declared = load(folder / "pipelines/shop.yml")
    Engine(spark, declared, folder / "lake", now=settled).run_all()
    return folder


def revenue(shop: Path, *, final: bool) -> dict[str, Decimal]:
    rows = pa.table(DeltaTable(str(shop / "lake/shop/gold/sales_per_hour")).to_pyarrow_table())
    earned: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows.to_pylist():
        if row["final"] is final:
            earned[row["channel"]] += row["revenue"]
    return earned


def answer(language: str, block: str, shop: Path) -> str:
    """What a block prints, run by a process of its own within the project."""
    typed = ["bash", "-c", block.removeprefix("$ ")]
    # Threads of delta-rs that still run may abort a process that ends at once.
    code = (SESSION if "spark." in block else "") + block + ENDS
    done = subprocess.run(
        typed if language == "console" else [sys.executable, "-c", code],
        cwd=shop,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "pipelines")]),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_tool_has_its_block() -> None:
    assert len(BLOCKS) == len(NAMES)
    for name, (_, block) in zip(NAMES, BLOCKS, strict=True):
        assert name in block


@pytest.mark.parametrize(
    ("language", "block"),
    # In short runs, tests/spark/test_maintenance.py covers the Delta reader of Spark.
    [pytest.param(*each, marks=in_full if "spark." in each[1] else ()) for each in BLOCKS],
    ids=NAMES,
)
def test_the_answer_is_that_of_the_final_rows(shop: Path, language: str, block: str) -> None:
    expected = revenue(shop, final=True)
    assert expected
    assert revenue(shop, final=False)
    said = [set(re.findall(r"[\w.]+", line)) for line in answer(language, block, shop).splitlines()]
    found = {c: any({c, str(earned)} <= words for words in said) for c, earned in expected.items()}
    assert all(found.values()), (found, said)
