"""Which changed declarations can compute the rows of an existing table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.commands import Place
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.history.backfill.compatibility import require_compatible
from headgate.history.backfill.errors import OtherDeclarationError
from tests.support.readings import declare


@pytest.fixture
def deployed(tmp_path: Path) -> Pipeline:
    return declare(tmp_path, tmp_path)


def changed(pipeline: Pipeline, old: str, new: str) -> Pipeline:
    assert old in pipeline.text
    return load(pipeline.file, text=pipeline.text.replace(old, new, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("heaviest: max(weight)", "heaviest: min(weight)"),
        ("where: value > 0", "where: value > 1"),
        ("site: lower(site)", "site: upper(site)"),
        ("doubled: level * 2", "doubled: level * 3"),
        ("tumbling: 1 minute", "tumbling: 2 minutes"),  # of another table
    ],
)
def test_formulas_conditions_and_silver_may_change(deployed: Pipeline, old: str, new: str) -> None:
    require_compatible(deployed, changed(deployed, old, new), "bands")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pipeline: readings", "pipeline: others", "declares the pipeline others"),
        ("  bands:", "  stripes:", "the table is not declared"),
        ("within: 10 minutes", "within: 9 minutes", "its records in another way"),
        ("event_id: [id]", "event_id: [site]", "its records in another way"),
        ("tumbling: 5 minutes", "tumbling: 6 minutes", "window changes"),
        ("allowed_lateness: 0 seconds", "allowed_lateness: 1 second", "allowed_lateness changes"),
        ("tenth: level div 10", "tenth: level div 11", "by changes"),
        ("heaviest: max(weight)", "heaviest: max(level)", "heaviest changed: double -> int$"),
        ("heaviest: max(weight)", "most: max(weight)", "heaviest removed, most added"),
    ],
)
def test_bronze_and_the_shape_of_gold_may_not(
    deployed: Pipeline, old: str, new: str, said: str
) -> None:
    given = replace(changed(deployed, old, new), file=Path("other folder/new.yml"))
    with pytest.raises(OtherDeclarationError) as refused:
        require_compatible(deployed, given, "bands")
    assert re.search(said, refused.value.message)
    place = Place(pipeline="shop", root="/lake")
    assert "headgate upgrade 'other folder/new.yml' --root /lake" in refused.value.text(place)
    with pytest.raises(OtherDeclarationError) as refused:
        require_compatible(deployed, replace(given, file=Path("new.txt")), "bands")
    assert "headgate upgrade ./new.txt --root /lake" in refused.value.text(place)
