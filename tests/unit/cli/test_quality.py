"""`headgate quality report`: the page, and Data Docs; rejected rows in `headgate status`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.flow.gates.validations import Validation, ValidationLog
from headgate.lake.control.ownership import Owner
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease, report

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.slow
def test_a_page_or_a_site(ask: Ask, lake: Lake, of_lake: tuple[str, str, str]) -> None:
    file = lake.pipeline.file
    text = file.read_text()
    file.write_text(text.replace("    allowed_", "    expectations: sane\n    allowed_"))
    folder = project_folder(file) / "expectations"
    folder.mkdir()
    (folder / "sane.yml").write_text("expectations: [{id: sane, expect: events > 0}]")
    suite = load(file).gold["per_minute"].suite
    assert suite is not None
    result = RuleResult("sane", "critical", "hold", met=False, unexpected=3)
    found = Validation("per_minute", 7, 9, NOON, suite, (result,))
    ValidationLog(lake.layout, "per_minute").record(found)
    code, out, _ = ask("quality", "report", *of_lake, "--output", "page.html")
    assert (code, out) == (0, "page.html\n")
    assert "3 rows break it" in Path("page.html").read_text()
    before = sorted(Path().iterdir())
    code, out, _ = ask("quality", "report", *of_lake)
    page = Path(lake.layout.storage.root) / "_headgate/quality.html"
    assert (code, out, sorted(Path().iterdir())) == (0, f"{page}\n", before)
    assert "3 rows break it" in page.read_text()
    code, out, _ = ask("quality", "report", *of_lake, "--data-docs", "site")
    assert (code, out) == (0, "site/index.html\n")
    assert "batch 7 version 9" in Path("site/index.html").read_text()


def test_a_folder_that_cannot_be_made(ask: Ask, lake: Lake, of_lake: tuple[str, str, str]) -> None:
    for folder in ("/proc/x", str(lake.pipeline.file)):
        code, _, err = ask("quality", "report", *of_lake, "--data-docs", folder)
        assert (code, f"{folder} cannot be made" in err, "Traceback" in err) == (2, True, False)


def test_status_names_tables_with_rejected_rows(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    lease(lake.layout, Owner.here(), epoch=3, renewed=datetime.now(UTC))
    report(lake.layout, "fused", epoch=3, n=2, totals={"silver/good": {"silver": 9, "rejected": 0}})
    assert "rules rejected" not in ask("status", *of_lake)[1]
    totals = {"silver/good": {"silver": 9, "rejected": 1200}}
    report(lake.layout, "fused", epoch=3, n=2, totals=totals)
    assert "rows that rules rejected: good 1,200\n" in ask("status", *of_lake)[1]
