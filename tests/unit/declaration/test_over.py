"""Measures over the rows before each row in declarations: what they mean, and what is wrong with
them."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pytest

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.digest import digest
from headgate.declaration.errors import DeclarationError
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe, plan
from headgate.flow.gold.operators.over import Over
from tests.support.joins import declared

RANGE, ROWS = "range: 1 hour", "rows: 9\n      within: 1 day"
TABLE = """\
  spent:
    over:
      table: purchases
      {frame}
      by: {{who: purchases.buyer}}
      measures: {{paid: sum(purchases.amount), n: count(*)}}
    columns: {{who: who, mean: paid / n}}
    allowed_lateness: 20 seconds
"""


def spent(frame: str) -> Pipeline:
    return declared(more=TABLE.format(frame=frame))


def over(frame: str) -> Over:
    found: Over = spent(frame).gold["spent"].operator
    return found


class Wrong(NamedTuple):
    """``frame`` is what a table has in place of ``range``. The other fields are of the only
    problem; the key is below ``gold.spent.over``."""

    frame: str
    key: str
    says: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong("rows: 9", "rows", "needs 'within', such as `within: 1 day`: how old these rows"),
        Wrong(f"{RANGE}\n      rows: 9", "", "needs exactly one of the keys range, rows"),
        Wrong(f"{RANGE}\n      {ROWS}", "", "needs exactly one of the keys range, rows"),
        Wrong("within: 1 day", "", "needs exactly one of the keys range, rows"),
        Wrong(f"{RANGE}\n      within: 1 day", "within", "has no meaning with 'range'; remove it"),
        Wrong("rows: 0\n      within: 1 day", "rows", "0 is too little"),
        Wrong("rows: 1001\n      within: 1 day", "rows", "1001 is too much"),
        Wrong("rows: 2 days\n      within: 1 day", "rows", "must be a whole number"),
        Wrong("rows: 9\n      within: 0 s", "within", "too little"),
        Wrong("rows: 9\n      within: soon", "within", "'soon' is not a duration"),
        Wrong("rows: 9\n      within: 400 days", "within", "too much"),
    ],
    ids=lambda wrong: wrong.frame.replace("\n     ", ""),
)
def test_a_mistake_is_reported_once_and_where_it_is(wrong: Wrong) -> None:
    with pytest.raises(DeclarationError) as refused:
        spent(wrong.frame)
    (problem,) = refused.value.problems
    assert problem.key == f"gold.spent.over.{wrong.key}".rstrip(".")
    assert wrong.says in problem.message


def test_rows_are_read_again_as_far_back_as_they_may_count() -> None:
    for frame, rows, within in ((RANGE, None, "1 hour"), (ROWS, 9, "1 day")):
        table = spent(frame).gold["spent"]
        found = over(frame)
        hours = {"1 hour": 1, "1 day": 24}[within]
        assert (found.rows, found.within) == (rows, timedelta(hours=hours))
        assert operator_of(table).reach(found) == hours * 3_600_000_000


def test_the_plan_of_rows() -> None:
    found = plan(spent(ROWS))["gold"]["spent"]["over"]
    assert {name: found[name] for name in ("table", "rows", "within", "by")} == {
        "table": "purchases",
        "rows": 9,
        "within": "1 day",
        "by": {"who": "purchases.buyer"},
    }
    assert "range" not in found
    line = "paid, n of who in the last 9 rows before each row of purchases, within 1 day, "
    assert f"  over     {line}" in describe(spent(ROWS))
    one = describe(spent(ROWS.replace("9", "1")))
    assert "in the last row before each row of purchases, within 1 day" in one


def test_the_meaning_of_a_range_has_nothing_of_rows() -> None:
    """The digests of tables from before there were rows stay."""
    operator = over(RANGE)
    kind = operator_of(spent(RANGE).gold["spent"])
    assert [*kind.meaning(operator)["over"]] == ["table", "range", "by", "measures"]


@pytest.mark.parametrize("frame", ["rows: 8\n      within: 1 day", "rows: 9\n      within: 2 days"])
def test_other_rows_are_another_meaning(frame: str) -> None:
    one, other = spent(ROWS).definitions, spent(frame).definitions
    assert {path for path in one if one[path] != other[path]} == {"gold/spent", "late/spent"}
    same = spent(ROWS.replace("1 day", "24 hours")).definitions
    assert digest(same) == digest(one)
