"""Columns of a join that are whole rows of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.support.joined_project import JoinedProject, events
from tests.support.tables import read

pytestmark = pytest.mark.spark

CLICKS = "clicks: {from: raw, "
NESTED = """clicks: {from: raw, columns: {place: "named_struct('n', amount)", last: upper(id)}, """
WHOLE = """
  whole:
    join: {left: clicks, right: purchases, on: [user], within: 60 s, kind: left}
    columns: {click: clicks, purchase: purchases, is_alone: purchases is null}
    allowed_lateness: 20 s
"""


class NestedProject(JoinedProject):
    """Silver has the column ``place``, a struct, after all others, and its declaration has not."""

    def pipeline(self) -> Pipeline:
        file = super().pipeline().file
        text = file.read_text()
        assert CLICKS in text
        file.write_text(text.replace(CLICKS, NESTED))
        return load(file)


def test_a_column_may_be_a_whole_row(tmp_path: Path, spark: SparkSession) -> None:
    project = NestedProject(tmp_path, spark, (), WHOLE)
    sent = {event.id: event for event in events(80, seed=6)}
    project.land([*sent.values()])
    engine = project.engine().run_all()
    rows = read(engine.root, "gold/whole", "shop")
    assert {row["is_alone"] for row in rows} == {True, False}
    for row in rows:
        click, purchase = row["click"], row["purchase"]
        event = sent[click["id"]]
        assert [*click] == ["id", "kind", "user", "amount", "at", "last", "place"]
        assert (click["last"], click["place"]) == (event.id.upper(), {"n": event.amount})
        assert (click["user"], click["at"]) == (event.user, event.at)
        assert row["is_alone"] == (purchase is None)
        assert purchase is None or purchase["amount"] == sent[purchase["id"]].amount
