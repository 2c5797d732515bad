"""``headgate expectations``, as a user types it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headgate.declaration.expectations.library import great_expectations
from headgate.declaration.load import load
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake, silver

RULES = """
expectations:
- {id: small, expect: amount < 100, action: warn, severity: info}
- {id: named, expect: expect_column_values_to_not_be_null, column: id, action: stop, above: 5 %}
"""
WITH_SUITE = DECLARATION.replace("    where: amount > 0\n", "    expectations: good\n")


@pytest.fixture
def project(ask: Ask, tmp_path: Path) -> Path:
    """A declaration with a suite, in the folder where ``ask`` runs, and no tables."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "expectations").mkdir()
    (tmp_path / "pipelines/tiny.yml").write_text(WITH_SUITE)
    (tmp_path / "expectations/good.yml").write_text(RULES)
    return tmp_path


def name_suite(name: str) -> None:
    text = WITH_SUITE.replace("expectations: good", f"expectations: {name}")
    Path("pipelines/tiny.yml").write_text(text)


def name_gold_suite(name: str) -> None:
    of_gold = "    window: {tumbling: 1 minute}\n"
    text = WITH_SUITE.replace(of_gold, f"{of_gold}    expectations: {name}\n")
    Path("pipelines/tiny.yml").write_text(text)


def fill(project: Path) -> Lake:
    lake = Lake(project / "lake", load(project / "pipelines/tiny.yml"))
    lake.commit("silver/good", 1, [silver(0), silver(1)], {"silver": 2, "rule:small": 1})
    lake.commit("silver/good", 2, [silver(2)], {"silver": 1, "rule:small": 1})
    return lake


def test_list_says_how_many_rows_broke_each_rule(ask: Ask, project: Path) -> None:
    (suite,) = last_object(ask("expectations", "list", "tiny", "--json")[1])["suites"]
    assert [rule["broken"] for rule in suite["rules"]] == [None, None]
    fill(project)
    (suite,) = last_object(ask("expectations", "list", "tiny", "--json")[1])["suites"]
    assert (suite["table"], suite["suite"]) == ("silver.good", "good")
    rules = {rule["id"]: rule for rule in suite["rules"]}
    assert (rules["small"]["broken"], rules["named"]["broken"]) == (2, 0)
    assert (rules["named"]["action"], rules["named"]["above"]) == ("stop", 0.05)
    out = ask("expectations", "list", "tiny")[1]
    small = next(line for line in out.splitlines() if "small" in line)
    assert small.split()[:5] == ["silver.good", "small", "warn", "info", "2"]
    assert "stop above 5 %" in out


def test_list_names_the_rules_of_gold_too(ask: Ask, project: Path) -> None:
    name_gold_suite("versions")
    rule = "{id: some, expect: expect_table_row_count_to_be_between, min_value: 1}"
    (project / "expectations/versions.yml").write_text(f"expectations: [{rule}]\n")
    out = ask("expectations", "list", "tiny")[1].splitlines()[-1]
    assert out.split()[:5] == ["gold.per_minute", "some", "hold", "critical", "-"]
    assert out.endswith("expect_table_row_count_to_be_between min_value: 1")
    assert "expect_table_row_count_to_be_between min_value: 1\n" in ask("plan", "tiny")[1]
    suites = last_object(ask("expectations", "list", "tiny", "--json")[1])["suites"]
    assert [suite["table"] for suite in suites] == ["silver.good", "gold.per_minute"]


def test_list_where_no_table_has_a_suite(ask: Ask, of_lake: tuple[str, str, str]) -> None:
    assert ask("expectations", "list", *of_lake)[1] == "no table of tiny has a suite\n"


def test_export_and_import_of_files(ask: Ask, project: Path) -> None:
    code, out, _ = ask("expectations", "export", "tiny", "silver.good", "--output", "gx/good.json")
    assert (code, out) == (0, "wrote gx/good.json: 2 rules\n")
    text = ask("expectations", "export", "tiny", "silver.good")[1]
    assert Path("gx/good.json").read_text() == text
    asked = ("expectations", "import", "gx/good.json")
    code, out, _ = ask(*asked, "--output", "expectations/again.yml")
    assert code == 0
    assert "wrote expectations/again.yml: 2 rules\n" in out
    assert "expectations: again\n" in out
    assert ask(*asked)[1] == Path("expectations/again.yml").read_text()
    name_suite("again")
    suite = load(Path("pipelines/tiny.yml")).silver["good"].suite
    assert suite is not None
    assert [rule.id for rule in suite.rules] == ["small", "named"]


VERSIONS = """
expectations:
- {id: some, expect: expect_table_row_count_to_be_between, min_value: 1}
- {id: sane, expect: events > 0, action: warn}
- {id: all, expect: expect_column_sum_to_equal_silver, column: events, silver: 1}
- id: fresh
  expect: expect_column_max_to_be_between
  column: window_end
  min_value: now - 10 minutes
- {id: keys, expect: expect_column_values_to_be_unique, column: window_start, mostly: 0.5}
"""


@pytest.mark.slow
def test_a_suite_of_gold_is_one_of_great_expectations(ask: Ask, project: Path) -> None:
    name_gold_suite("versions")
    (project / "expectations/versions.yml").write_text(VERSIONS)
    code, out, err = ask("expectations", "export", "tiny", "gold.per_minute")
    assert (code, err) == (0, "left out all: it looks at two tables\n")
    gx = great_expectations()
    suite = gx.ExpectationSuite(**json.loads(out))
    assert [each.severity for each in suite.expectations] == ["critical"] * 4
    some, _, fresh, keys = (each.configuration.kwargs for each in suite.expectations)
    assert (some["min_value"], keys["mostly"]) == (1, 0.5)
    # The time, as Great Expectations itself evaluates it.
    from great_expectations.core.suite_parameters import parse_suite_parameter

    floor = datetime.fromisoformat(parse_suite_parameter(fresh["min_value"]["$PARAMETER"]))
    assert abs((datetime.now() - floor).total_seconds() - 600) < 60  # noqa: DTZ005
    metas = [each["meta"]["headgate"] for each in json.loads(out)["expectations"]]
    assert metas[1] == {"id": "sane", "action": "warn", "expect": "events > 0"}
    # Import the suite again.
    before = load(Path("pipelines/tiny.yml")).gold["per_minute"].suite
    (project / "versions.json").write_text(out)
    to = ("--output", "expectations/again.yml")
    code, out, err = ask("expectations", "import", "versions.json", "--gold", *to)
    assert (code, err) == (0, "")
    assert "under gold.TABLE: expectations: again\n" in out
    file = Path("pipelines/tiny.yml")
    file.write_text(file.read_text().replace("expectations: versions", "expectations: again"))
    again = load(file).gold["per_minute"].suite
    assert before
    assert again
    kept = [rule for rule in before.rules if rule.id != "all"]
    assert [rule.id for rule in again.rules] == [rule.id for rule in kept]
    assert again.rules[2].arguments["min_value"] == "now - 600 s"
    assert [again.rules[place] for place in (0, 1, 3)] == [kept[place] for place in (0, 1, 3)]


def test_profile_of_gold(ask: Ask, project: Path) -> None:
    rows = [{"window_start": NOON + timedelta(minutes=i), "events": 3 + i} for i in range(2)]
    fill(project).commit("gold/per_minute", 1, rows, {"folded": 7})
    to = ("--output", "expectations/versions.yml")
    code, out, err = ask("expectations", "profile", "tiny", "gold.per_minute", *to)
    assert (code, err) == (0, "")
    assert "under gold.per_minute: expectations: versions\n" in out
    name_gold_suite("versions")
    suite = load(Path("pipelines/tiny.yml")).gold["per_minute"].suite
    assert suite is not None
    assert [(rule.id, rule.action) for rule in suite.rules] == [
        ("keys_are_unique", "warn"),
        ("events_not_null", "warn"),
        ("events_between", "warn"),
    ]
    assert suite.rules[0].arguments == {"column": "window_start"}


def test_nothing_is_overwritten(ask: Ask, project: Path) -> None:
    to = ("--output", "expectations/good.yml")
    code, _, err = ask("expectations", "export", "tiny", "silver.good", *to)
    assert code == 2
    assert "expectations/good.yml exists, and is not overwritten" in err
    assert Path("expectations/good.yml").read_text() == RULES


def test_what_is_not_supported_is_listed_and_left_out_only_if_asked(
    ask: Ask, tmp_path: Path
) -> None:
    items = [
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}},
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}},
    ]
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps({"name": "theirs", "expectations": items}))
    to = ("--output", "expectations/theirs.yml")
    code, out, err = ask("expectations", "import", file.name, *to)
    assert (code, out) == (2, "")
    assert "1 of 2 expectations are not supported for rows:\n" in err
    assert "  1. expect_column_values_to_be_unique: is not supported for rows" in err
    assert "headgate expectations import theirs.json --skip-unsupported\n" in err
    assert not Path("expectations/theirs.yml").exists()
    code, out, err = ask("expectations", "import", file.name, "--skip-unsupported", *to)
    assert code == 0
    assert "  1. expect_column_values_to_be_unique: is not supported" in err
    assert "- id: id_not_null" in Path("expectations/theirs.yml").read_text()
    file.write_text(json.dumps({"name": "theirs", "expectations": items[:1]}))
    code, _, err = ask("expectations", "import", file.name, "--skip-unsupported")
    assert code == 2
    assert "has no expectation that rules of rows can ask" in err
    assert ask("expectations", "import", "no.json")[0] == 2


def test_a_table_that_is_not_there_or_has_no_suite(
    ask: Ask, project: Path, of_lake: tuple[str, str, str]
) -> None:
    code, _, err = ask("expectations", "export", "tiny", "silver.goot")
    assert code == 2
    assert "no table 'silver.goot' (did you mean \"silver.good\"?)" in err
    assert "there are: silver.good, gold.per_minute; see headgate plan tiny" in err
    pipeline, *root = of_lake
    code, _, err = ask("expectations", "export", pipeline, "silver.good", *root)
    assert code == 2
    assert "silver.good has no suite\npropose one: " in err
    assert f"headgate expectations profile {pipeline} " in err


def rows_of(project: Path, ids: list[str], amounts: list[int | None]) -> None:
    columns = {"id": pa.array(ids, pa.string()), "amount": pa.array(amounts, pa.int32())}
    at = {"at": pa.array([NOON] * len(ids), pa.timestamp("us", "UTC"))}
    write_deltalake(project / "lake/tiny/silver/good", pa.table(columns | at))


def test_profile_proposes_what_plan_accepts(ask: Ask, project: Path) -> None:
    asked = ("expectations", "profile", "tiny", "silver.good")
    code, _, err = ask(*asked)
    assert code == 1
    assert "tiny has no tables" in err
    rows_of(project, ["a", "b", "c"], [5, None, 70])
    to = ("--output", "expectations/proposed.yml")
    code, out, _ = ask(*asked, *to)
    assert code == 0
    assert "under silver.good: expectations: proposed\n" in out
    assert Path("expectations/proposed.yml").read_text() == ask(*asked)[1] == PROPOSED
    name_suite("proposed")
    suite = load(Path("pipelines/tiny.yml")).silver["good"].suite
    assert suite is not None
    assert [rule.action for rule in suite.rules] == ["warn"] * 5


PROPOSED = """\
# Proposed from 3 rows of silver.good, which all meet it. Keep what must be true.
expectations:
  # 3 rows, no nulls
  - id: id_not_null
    expect: expect_column_values_to_not_be_null
    column: id
    action: warn
  # 3 rows, no nulls, length from 1 to 1
  - id: id_lengths_between
    expect: expect_column_value_lengths_to_be_between
    column: id
    min_value: 1
    max_value: 1
    action: warn
  # 3 rows, no nulls
  - id: at_not_null
    expect: expect_column_values_to_not_be_null
    column: at
    action: warn
  # 3 rows, no nulls, from 2026-05-04 12:00:00 to 2026-05-04 12:00:00
  - id: at_between
    expect: expect_column_values_to_be_between
    column: at
    min_value: "2026-05-04 12:00:00"
    max_value: "2026-05-04 12:00:00"
    action: warn
  # 3 rows, 1 null, from 5 to 70
  - id: amount_between
    expect: expect_column_values_to_be_between
    column: amount
    min_value: 5
    max_value: 70
    action: warn
"""


def test_nothing_is_proposed_from_no_rows(ask: Ask, project: Path) -> None:
    rows_of(project, [], [])
    code, out, err = ask("expectations", "profile", "tiny", "silver.good")
    assert (code, out) == (1, "")
    assert "silver.good has no rows, and nothing can be proposed\n" in err
    assert "headgate run tiny --once" in err
