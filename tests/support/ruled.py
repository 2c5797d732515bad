"""The readings with suites of row rules, written twice: as YAML for the engine and as functions for
the oracle."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.oracle import RowRule, Rules
from tests.support.readings import declare, rules

Row = dict[str, Any]

SUITES = {
    "clean": r"""
expectations:
  - {id: named, expect: expect_column_values_to_not_be_null, column: site, severity: info,
     action: warn}
  - {id: known, expect: expect_column_values_to_be_in_set, column: site,
     value_set: [north, south, east, "o'neil"], severity: warning}
  - {id: shaped, expect: expect_column_values_to_match_regex, column: id, regex: "^[a-z0-9-]+$"}
  - {id: plain, expect: expect_column_values_to_not_match_regex_list, column: site,
     regex_list: ["[^ -~]", "^\\s"], action: warn}
  - {id: short, expect: expect_column_value_lengths_to_be_between, column: id, min_value: 3,
     max_value: 16}
  - {id: affordable, expect: expect_column_values_to_be_between, column: value,
     min_value: -1000, max_value: 9999.99}
  - {id: not_13, expect: expect_column_values_to_not_be_in_set, column: value,
     value_set: [13.13, -13.13]}
  - {id: level_ends, expect: expect_column_values_to_be_between, column: level, min_value: -100,
     max_value: 100, strict_max: true}
  - {id: doubled_up, expect: expect_column_pair_values_a_to_be_greater_than_b, column_A: doubled,
     column_B: level, or_equal: true, ignore_row_if: either_value_is_missing, action: warn}
  - {id: differs, expect: expect_select_column_values_to_be_unique_within_record,
     column_list: [level, doubled], ignore_row_if: any_value_is_missing, action: warn}
  - {id: light, expect: "weight < 500.5"}
  - {id: priced, expect: "value is not null", row_condition: "ok"}
  - {id: south_is_low, expect: "not (site = 'south' and level > 50)", action: stop, above: 90 %}
  - {id: in_time, expect: expect_column_values_to_be_between, column: at,
     min_value: "2026-03-01 11:00:00", max_value: "2026-03-01 11:50:00"}
""",
    "strong": """
expectations:
  - {id: this_year, expect: expect_column_values_to_be_between, column: day,
     min_value: 2026-01-01, max_value: 2026-12-31}
  - {id: said, expect: expect_column_values_to_not_be_null, column: ok}
  - {id: heavy, expect: "weight * level >= 1", severity: info, action: warn}
""",
}
LINE_END = "(?:\r\n|[\n\r\x85\u2028\u2029])?"
"""A last line end, which Java's ``$`` allows to follow."""


def _of(column: str, is_met: Callable[[Any], bool]) -> Callable[[Row], bool | None]:
    """A rule that does not apply to nulls."""
    return lambda row: None if row[column] is None else is_met(row[column])


def _of_both(is_met: Callable[[int, int], bool]) -> Callable[[Row], bool | None]:
    return lambda row: None if row["level"] is None else is_met(row["level"], row["doubled"])


def _is_plain(site: str) -> bool:
    return re.search("[^ -~]", site) is None and site[:1] not in tuple(" \t\n\x0b\f\r")


def _is_low(row: Row) -> bool | None:
    return not (row["site"] == "south" and row["level"] is not None and row["level"] > 50)


START, END = (datetime(2026, 3, 1, *clock, tzinfo=UTC) for clock in ((11, 0), (11, 50)))
THIRTEEN = Decimal("13.13")
ORACLE: Mapping[str, Mapping[str, RowRule]] = {
    "clean": {
        "named": RowRule(lambda row: row["site"] is not None, rejects=False, severity="info"),
        "known": RowRule(
            _of("site", lambda site: site in ("north", "south", "east", "o'neil")),
            severity="warning",
        ),
        "shaped": RowRule(
            _of("id", lambda id_: re.fullmatch(f"[a-z0-9-]+{LINE_END}", id_) is not None)
        ),
        "plain": RowRule(_of("site", _is_plain), rejects=False),
        "short": RowRule(_of("id", lambda id_: 3 <= len(id_) <= 16)),
        "affordable": RowRule(_of("value", lambda value: -1000 <= value <= Decimal("9999.99"))),
        "not_13": RowRule(_of("value", lambda value: abs(value) != THIRTEEN)),
        "level_ends": RowRule(_of("level", lambda level: -100 <= level < 100)),
        "doubled_up": RowRule(_of_both(lambda level, doubled: doubled >= level), rejects=False),
        "differs": RowRule(_of_both(lambda level, doubled: doubled != level), rejects=False),
        "light": RowRule(_of("weight", lambda weight: weight < 500.5)),
        "priced": RowRule(lambda row: row["value"] is not None or not row["ok"]),
        "south_is_low": RowRule(_is_low),
        "in_time": RowRule(lambda row: START <= row["at"] <= END),
    },
    "strong": {
        "this_year": RowRule(_of("day", lambda day: date(2026, 1, 1) <= day <= date(2026, 12, 31))),
        "said": RowRule(lambda row: row["ok"] is not None),
        "heavy": RowRule(
            lambda row: None if row["weight"] is None else row["weight"] * row["level"] >= 1,
            rejects=False,
            severity="info",
        ),
    },
}


def declare_ruled(
    folder: Path, landing: Path, gold: Collection[str], silver: Collection[str] = ()
) -> Pipeline:
    file = declare(folder, landing, gold=gold, silver=silver).file
    (folder / "expectations").mkdir()
    text = file.read_text()
    for table in ruled(gold, silver).silver:
        (folder / "expectations" / f"{table}.yml").write_text(SUITES[table])
        head = f"  {table}:\n    from: raw\n"
        assert head in text
        text = text.replace(head, f"{head}    expectations: {table}\n")
    file.write_text(text)
    return load(file)


def ruled(gold: Collection[str], silver: Collection[str] = ()) -> Rules:
    plain = rules(gold=gold, silver=silver)
    silver = {name: replace(table, suite=ORACLE[name]) for name, table in plain.silver.items()}
    return replace(plain, silver=silver)
