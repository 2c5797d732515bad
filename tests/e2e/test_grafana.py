"""The dashboard conforms to Grafana's own schema. Grafana itself is not run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.grafana_schema import install, problems
from tests.support.rounds import in_full

pytestmark = [pytest.mark.e2e, in_full]

DASHBOARD = Path(__file__).parents[2] / "infra/grafana/dashboards/headgate.json"
Check = Callable[[object], str]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("grafana")
    if not install(folder):
        pytest.skip("the registry of npm cannot be reached")
    return lambda dashboard: problems(folder, dashboard)


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def test_the_dashboard_keeps_the_schema(check: Check) -> None:
    assert check(dashboard()) == ""


def test_a_wrong_one_would_be_seen(check: Check) -> None:
    assert "'string' is not assignable" in check(dashboard() | {"schemaVersion": "41"})
    assert '"panel"' in check(dashboard() | {"panel": []})
