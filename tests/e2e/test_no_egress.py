"""Neither Great Expectations nor Headgate sends anything to another machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers import PATIENCE, REPOSITORY
from tests.support.no_egress import isolated

pytestmark = pytest.mark.e2e

GATED = "    allowed_lateness: 10 minutes\n"
SUITE = """
expectations:
  - {id: sane, expect: revenue >= 0}
  - {id: keys, expect: expect_compound_columns_to_be_unique, column_list: [window_start, channel]}
  - {id: mean, expect: expect_column_mean_to_be_between, column: orders, max_value: 1}
"""
ROWS = "silver.clean_orders"
COMMANDS = [
    ["plan", "shop"],
    ["run", "shop", "--once", "--drain"],
    ["gate", "status", "shop"],
    ["gate", "release", "shop", "gold.sales_per_hour", "--reason", "a real outlier"],
    ["expectations", "list", "shop"],
    ["expectations", "profile", "shop", ROWS, "--output", "expectations/proposed.yml"],
    ["expectations", "export", "shop", ROWS, "--output", "suite.json"],
    ["expectations", "import", "suite.json", "--output", "expectations/imported.yml"],
    ["quality", "report", "shop", "--output", "report.html"],
    ["quality", "report", "shop", "--data-docs", "docs"],
]
HELD = 10
CODES = [0, HELD, HELD, *[0] * 7]


def run(folder: Path, commands: list[list[str]], *head: str) -> dict[str, Any]:
    listed, result = folder / "commands.json", folder / "result.json"
    listed.write_text(json.dumps(commands))
    module = [sys.executable, "-m", "tests.support.no_egress", str(listed), str(result)]
    paths = os.pathsep.join(map(str, [REPOSITORY, REPOSITORY / "pipelines"]))
    done = subprocess.run(
        [*head, *module],
        cwd=folder,
        # Headgate has to disable analytics even if the user's environment enables it.
        env=os.environ | {"PYTHONPATH": paths, "GX_ANALYTICS_ENABLED": "true"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(result.read_text())
    return found | {"output": done.stdout + done.stderr}


def test_nothing_leaves_this_machine(tmp_path: Path) -> None:
    run(tmp_path, [["init", "shop"]])
    shop = tmp_path / "shop"
    declaration = shop / "pipelines/shop.yml"
    text = declaration.read_text()
    assert GATED in text
    declaration.write_text(text.replace(GATED, f"{GATED}    expectations: sales_per_hour\n"))
    (shop / "expectations/sales_per_hour.yml").write_text(SUITE)
    head = isolated(tmp_path)
    found = run(shop, COMMANDS, *head)
    assert found["codes"] == CODES, found["output"]
    assert found["tried"] == []
    assert not head or found["unroutable"] == 0
    assert (found["imported"], found["analytics"]) == (True, "false")
    assert "sane" in (shop / "report.html").read_text()
