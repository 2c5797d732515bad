"""A verb that reads a damaged table reports the damage, and how to repair it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli.lifecycle.run import batches_of
from headgate.lake.control.driver_requests import pause
from headgate.lake.storage.layout import Layout
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]


def file_of(lake: Lake, table: str) -> Path:
    return next(Path(lake.layout.storage.uri(f"{table}/data")).rglob("*.parquet"))


def require_told(told: tuple[int, str, str], file: Path, of_lake: OfLake) -> None:
    code, _, err = told
    assert (code, "\x1b" in err) == (5, False), err
    assert str(file) in err
    assert f"headgate repair {of_lake[0]} --dry-run" in err


def test_a_missing_file_is_damage(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    file = file_of(lake, "silver/good")
    file.unlink()
    place, *root = of_lake
    require_told(ask("ledger", *of_lake, "--by-id"), file, of_lake)
    require_told(ask("query", place, "FROM silver.good", *root), file, of_lake)
    require_told(ask("query", place, "FROM silver.good", "--at", "1", *root), file, of_lake)


def test_a_file_with_another_page_is_damage(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    file = file_of(lake, "bronze/events")
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"x" * 60 + content[64:])
    require_told(ask("query", of_lake[0], "FROM bronze.events", *of_lake[1:]), file, of_lake)


def test_the_damage_of_another_table_is_no_matter(ask: Ask, lake: Lake, of_lake: OfLake) -> None:
    file_of(lake, "silver/good").unlink()
    place, *root = of_lake
    assert ask("query", place, "FROM gold.per_minute", *root)[0] == 0
    assert ask("query", place, "SELECT error('IOError') FROM gold.per_minute", *root)[0] == 2


def test_missing_rights_are_no_damage(
    ask: Ask, lake: Lake, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.insight.ledger import by_id

    def refuse(*_: object) -> None:
        raise OSError("Permission denied (os error 13)")

    monkeypatch.setattr(by_id._Prover, "_load", refuse)
    assert ask("ledger", *of_lake, "--by-id")[0] == 8


def test_a_damaged_document_of_one_pipeline_leaves_the_list_of_the_others(
    ask: Ask, lake: Lake, of_lake: OfLake
) -> None:
    pause(lake.layout, datetime(2026, 5, 4, 12, tzinfo=UTC))
    path = Path(lake.layout.storage.uri(Layout.document("pause")))
    path.write_text(path.read_text()[:-9])
    text = lake.pipeline.file.read_text()
    Path("other.yml").write_text(text.replace("pipeline: tiny", "pipeline: other"))
    code, out, _ = ask("list", *of_lake[1:], "--json")
    assert code == 0
    found = {each["name"]: each for each in last_object(out)["pipelines"]}
    assert found["tiny"]["state"] == "damaged"
    assert "_headgate/pause" in found["tiny"]["problem"]
    assert found["other"]["has_run"] is False


def test_a_folder_that_a_crash_left_is_no_table(lake: Lake) -> None:
    log = Path(lake.layout.storage.uri("bronze/events/_delta_log"))
    assert batches_of(lake.layout, lake.pipeline) == 2
    for entry in log.iterdir():
        entry.unlink()
    assert batches_of(lake.layout, lake.pipeline) == 0
