"""The command that ``headgate plan`` names for existing tables."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.lake.control.ownership import Owner
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease


@pytest.mark.parametrize(
    ("runs", "changed", "verbs"),
    [
        (False, False, ["run"]),
        (True, False, ["restart", "status"]),
        (False, True, ["upgrade"]),
        (True, True, ["upgrade"]),
    ],
)
def test_what_comes_next_depends_on_the_state(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], runs: bool, changed: bool, verbs: list[str]
) -> None:
    if runs:
        lease(lake.layout, Owner.here(), epoch=3, renewed=datetime.now(UTC))
    if changed:
        text = lake.pipeline.file.read_text()
        lake.pipeline.file.write_text(text.replace("minute}", "hour}"))
    code, out, _ = ask("plan", *of_lake)
    words = [
        line.split("headgate ")[1].split()[0] for line in out.splitlines() if "headgate " in line
    ]
    assert (code, words) == (0, verbs)
