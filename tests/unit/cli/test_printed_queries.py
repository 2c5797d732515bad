"""Printed queries name a table with its layer, because its name may be an SQL keyword."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.cli.inspect.status_screen import show_checkpoints
from headgate.cli.lifecycle.concluding import conclude
from headgate.insight.status.checkpoints import Checkpoints, OpenWindow
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import NOON, Lake

OfLake = tuple[str, str, str]


@pytest.mark.parametrize("word", ["select", "order", "left", "between", "table"])
def test_a_name_with_its_layer_may_be_a_word_of_sql(
    ask: Ask, lake: Lake, of_lake: OfLake, word: str
) -> None:
    pipeline, *root = of_lake
    for layer in ("gold", "late"):
        folder = Path(lake.layout.storage.root, layer)
        (folder / "per_minute").rename(folder / word)
    file = Path(pipeline)
    file.write_text(file.read_text().replace("per_minute", word))
    code, out, err = ask("query", pipeline, f"SELECT events FROM gold.{word} LIMIT 10", *root)
    assert (code, err) == (0, "")
    assert "events" in out


def test_a_printed_query_names_the_layer(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    window = OpenWindow("gold/per_minute", (NOON, NOON), 1, 1)
    show_checkpoints(Checkpoints({"events": 1}, 0, {}, (), (), (window,)))
    conclude(lake.pipeline, lake.layout, False, 0.0, 0, None)
    out = capsys.readouterr().out
    assert "SELECT * FROM gold.per_minute WHERE NOT final" in out
    assert "SELECT * FROM gold.per_minute LIMIT 10" in out


def test_a_pipeline_without_gold_ends_with_a_query_of_silver(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    conclude(replace(lake.pipeline, gold={}), lake.layout, False, 0.0, 0, None)
    assert "SELECT * FROM silver.good LIMIT 10" in capsys.readouterr().out
