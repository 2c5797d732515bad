"""Whatever producers send ends in silver or quarantine, with its bytes and the right reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.flow.bronze import stage as bronze_stage
from tests.oracle import Tables, derive
from tests.support.engine import Engine
from tests.support.hostile import HOSTILE, Line
from tests.support.landing import Landing, lines
from tests.support.readings import declare, rules
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

VALUES = {line.name: line.value(number) for number, line in enumerate(HOSTILE)}
GOLD = ("bands",)


class Outcome:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.bronze: dict[bytes, dict[str, Any]] = {
            row["value"]: row for row in read(root, "bronze/raw")
        }
        self.quarantine = {row["value"]: row for row in read(root, "quarantine/raw")}
        self.silver = {row["_offset"] for row in read(root, "silver/clean")}


MODES = {"in workers": 0, "in the driver": 1 << 40}
"""A batch is decoded in Spark's workers or, if it is small, in the driver."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    values = list(VALUES.values())
    # There are blank lines, and the last line has no line break.
    landing.write(
        "1.json", b"\n\r\n \t \n" + lines(values[:40]) + b"\n\n" + lines(values[40:])[:-1]
    )
    return landing


@pytest.fixture(scope="module")
def outcomes(
    spark: SparkSession, landing: Landing, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    """The pipeline's tables by mode. A parameter would build them again for each test function."""
    found = {}
    for mode, most in MODES.items():
        folder = tmp_path_factory.mktemp("hostile")
        engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bronze_stage, "IN_DRIVER", most)
            engine.run_all()
        found[mode] = Outcome(engine.root)
    return found


@pytest.fixture(params=MODES)
def outcome(request: pytest.FixtureRequest, outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes[request.param]


@pytest.fixture(scope="module")
def expected(landing: Landing) -> Tables:
    return derive(landing.records(), rules(gold=GOLD))


def test_nothing_is_lost(outcome: Outcome) -> None:
    assert len(outcome.bronze) == len(set(VALUES.values())) == len(read(outcome.root, "bronze/raw"))


@pytest.mark.parametrize("line", HOSTILE, ids=[line.name for line in HOSTILE])
def test_a_line_ends_where_it_should(outcome: Outcome, line: Line) -> None:
    value = VALUES[line.name]
    row = outcome.bronze[value]
    assert (row["reason"], row["reason_column"]) == (line.reason, line.column)
    assert not row["duplicate"]
    assert (value in outcome.quarantine) == (line.reason is not None)
    assert (row["offset"] in outcome.silver) == (line.reason is None)


def test_quarantine_says_what_was_expected_and_shows_what_came(outcome: Outcome) -> None:
    rows = outcome.quarantine
    assert rows[VALUES['at "today"']]["detail"] == (
        "at is not ISO 8601 with an offset, such as 2026-01-31T12:00:00Z or "
        '2026-01-31 12:00:00+01:00: "today"'
    )
    assert rows[VALUES["level {}"]]["detail"] == "level is not of type int: {}"
    told = {row["reason"] for row in rows.values() if row["detail"] is not None}
    assert told == {row["reason"] for row in rows.values()} - {"future", "differing_duplicate"}


def test_every_table_equals_the_oracle(outcome: Outcome, expected: Tables) -> None:
    assert differences(outcome.root, expected) == {}


def test_the_oracle_agrees_with_the_list(expected: Tables) -> None:
    bronze = {row["value"]: (row["reason"], row["column"]) for row in expected.bronze}
    wanted = {VALUES[line.name]: (line.reason, line.column) for line in HOSTILE}
    assert {v[:99]: bronze[v] for v in wanted if bronze[v] != wanted[v]} == {}
