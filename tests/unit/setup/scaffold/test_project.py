from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from headgate.errors import HeadgateError
from headgate.setup.scaffold import create_project
from tests.oracle.account import derive
from tests.oracle.rules import GoldRules, Measure, Rules, SilverRules, SourceRecord

HOUR = timedelta(hours=1)

# What the template's declaration says, as far as these counts depend on it.
SHOP = Rules(
    event_id=("order_id",),
    time_column="ordered_at",
    time_format="iso",
    schema={
        "order_id": "string",
        "quantity": "int",
        "price": "decimal(10,2)",
        "ordered_at": "timestamp",
    },
    # The oracle knows no rules of rows: what the suite rejects is filtered here.
    silver={"clean_orders": SilverRules(where=lambda r: 0 < r["quantity"] * r["price"] <= 400)},
    gold={
        "sales_per_hour": GoldRules(
            silver="clean_orders",
            size=HOUR,
            every=HOUR,
            by={},
            measures={"orders": Measure("count", None, "bigint")},
            allowed_lateness=timedelta(minutes=10),
        )
    },
    within=HOUR,
)


def contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_project_has_its_folders_and_sample_data(tmp_path: Path) -> None:
    files = create_project(tmp_path / "shop")
    assert files == sorted(files)
    assert {str(path.relative_to(tmp_path / "shop")) for path in files} == contents(
        tmp_path / "shop"
    )
    assert contents(tmp_path / "shop") == {
        ".gitignore",
        "README.md",
        "dags/README.md",
        "dashboards/headgate-dashboard.schema.json",
        "dashboards/shop.yml",
        "dags/declarations.py",
        "dags/finished_hours.py",
        "dags/streams.py",
        "expectations/README.md",
        "expectations/clean_orders.yml",
        "landing/orders/2026-05-04T09.json",
        "landing/orders/2026-05-04T10.json",
        "landing/orders/2026-05-04T11.json",
        "pipelines/headgate.schema.json",
        "pipelines/shop.yml",
        "tests/test_shop.py",
    }


def test_the_sample_has_the_faults_that_the_readme_names(tmp_path: Path) -> None:
    create_project(tmp_path)
    lines = [
        line
        for path in sorted((tmp_path / "landing" / "orders").iterdir())
        for line in path.read_text().splitlines()
    ]
    assert len(lines) == 60
    assert len(lines) - len(set(lines)) == 1
    orders = [json.loads(line) for line in lines if line.endswith("}")]
    assert len(orders) == 59
    assert [order["quantity"] for order in orders].count(0) == 1
    clock, late = "", 0
    for order in orders:
        clock = max(clock, order["ordered_at"])
        late += clock[:13] > order["ordered_at"][:13] and clock[14:16] >= "15"
    assert late == 1


@pytest.mark.parametrize(
    ("file", "wrong"),
    [
        ("pipelines/shop.yml", {"jobs": "both"}),
        ("dashboards/shop.yml", {"charts": {"revenue": {"kind": "pie", "sql": "SELECT 1"}}}),
    ],
)
def test_an_editor_finds_the_schema_of_a_file(
    file: str, wrong: dict[str, object], tmp_path: Path
) -> None:
    create_project(tmp_path)
    text = tmp_path / file
    first, *_ = text.read_text().splitlines()
    schema = text.parent / first.removeprefix("# yaml-language-server: $schema=")
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    declared = YAML(typ="safe", pure=True).load(text)
    validator.validate(declared)
    assert not validator.is_valid(declared | wrong)


def test_a_folder_with_other_files_is_fine(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    create_project(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_nothing_is_overwritten_or_half_written(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.yml").write_text("mine")
    with pytest.raises(HeadgateError, match=r"pipelines/shop\.yml") as raised:
        create_project(tmp_path)
    assert "headgate init" in raised.value.remedy
    assert contents(tmp_path) == {"pipelines/shop.yml"}
    assert (tmp_path / "pipelines" / "shop.yml").read_text() == "mine"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("")
    with pytest.raises(HeadgateError, match="shop"):
        create_project(tmp_path / "shop")


@pytest.mark.parametrize("name", ["file/shop", "a" * 300])
def test_a_folder_that_cannot_be_made_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "file").touch()
    with pytest.raises(HeadgateError, match="cannot be written") as raised:
        create_project(tmp_path / name)
    assert raised.value.exit_code == 2
    assert "headgate init /home/me/shop" in raised.value.remedy


def test_the_folder_that_is_offered_is_beside_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shop"
    create_project(folder)
    monkeypatch.chdir(folder)
    with pytest.raises(HeadgateError) as raised:
        create_project(Path())
    assert f"headgate init {folder}-new" in raised.value.remedy


@pytest.mark.slow
def test_the_tests_of_a_project_pass(tmp_path: Path) -> None:
    create_project(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )


def test_the_sample_ends_as_the_readme_says(tmp_path: Path) -> None:
    create_project(tmp_path)
    files = sorted((tmp_path / "landing" / "orders").iterdir())
    lines = [line for path in files for line in path.read_bytes().splitlines()]
    seen = datetime(2026, 5, 4, 13, tzinfo=UTC)
    tables = derive((SourceRecord(0, i, line, seen) for i, line in enumerate(lines)), SHOP)
    assert len(tables.bronze) == 60
    assert [row["reason"] for row in tables.quarantine] == ["unparsable"]
    assert len(tables.silver["clean_orders"]) == 60 - 1 - 1 - 1 - 1
    (late,) = tables.late["sales_per_hour"]
    assert late["late_by"] > timedelta(hours=1)
    assert sum(row["orders"] for row in tables.gold["sales_per_hour"]) == 55
