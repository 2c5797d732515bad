"""What an argument names, and what is proposed for a word that names nothing."""

from __future__ import annotations

import pytest

from headgate.cli.declaration import gold_table, named
from headgate.cli.lifecycle.run import refreshed
from headgate.errors import UsageError
from tests.unit.insight.ledger.conftest import Lake


def test_a_word_that_names_nothing() -> None:
    assert named({"alerts": 1}, "alerts", "shop has no publication") == 1
    with pytest.raises(UsageError) as refused:
        named({"alerts": 1, "totals": 2}, "alert", "shop has no publication", "; see it")
    assert refused.value.exit_code == 2
    assert refused.value.message == "shop has no publication 'alert' (did you mean \"alerts\"?)"
    assert refused.value.remedy == "there are: alerts, totals; see it"
    with pytest.raises(UsageError) as refused:
        named({}, "alert", "shop has no publication")
    assert refused.value.message == "shop has no publication 'alert'"
    assert refused.value.remedy == "there are: none"


def test_a_gold_table_has_its_name_with_and_without_the_layer(lake: Lake) -> None:
    for word in ("per_minute", "gold.per_minute", "gold/per_minute"):
        assert gold_table(lake.pipeline, word) is lake.pipeline.gold["per_minute"]
    with pytest.raises(UsageError, match=r"tiny has no gold table 'gold.per_min' \(did you mean"):
        gold_table(lake.pipeline, "per_min")
    with pytest.raises(UsageError, match=r"with expectations named 'gold.per_minute'") as refused:
        gold_table(lake.pipeline, "per_minute", gated=True)
    assert refused.value.remedy == "there are: none"


def test_the_tables_to_rebuild(lake: Lake) -> None:
    assert refreshed(lake.pipeline, ["gold.per_minute", "silver.good"]) == (
        "gold/per_minute",
        "silver/good",
    )
    with pytest.raises(UsageError, match=r"--full-refresh: tiny has no table 'good'") as refused:
        refreshed(lake.pipeline, ["gold.per_minute", "good"])
    assert refused.value.remedy == "there are: silver.good, gold.per_minute"
