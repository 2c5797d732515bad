"""`headgate plan` names the replays of late rows that a changed declaration does not repeat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.digest import meaning_of
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.flow.operations.late_replay import replay_document
from headgate.history.savepoints.declaration_changes import late_again
from headgate.history.savepoints.declarations import keep_declaration
from headgate.history.savepoints.deployment import deployment_of
from headgate.lake.tables.decisions import Operation
from tests.support.decisions import append
from tests.unit.cli.conftest import Ask
from tests.unit.cli.conftest import ask as _ask
from tests.unit.history.savepoints.conftest import NOW, here
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

ask = _ask

BY = "    by: {amount: amount, day: day(at)}\n    measures:"
MISSING = "replays of late rows by amount cannot be repeated, and their rows will be late again"


def declare(file: Path, by: str = BY) -> Pipeline:
    file.write_text(DECLARATION.replace("    measures:", by))
    return load(file)


def asked(*keys: Mapping[str, str], **more: Any) -> tuple[Operation, ...]:
    return tuple(
        Operation(number, "late_replay", 1, replay_document("per_minute", keys=each, **more))
        for number, each in enumerate(keys, 1)
    )


def said(
    folder: Path, to: str, *keys: Mapping[str, str], rereads: bool = False, **more: Any
) -> list[str]:
    before, after = declare(folder / "a.yml"), declare(folder / "b.yml", to)
    meanings = meaning_of(before), meaning_of(after)
    replays = asked(*keys, **more)
    return list(late_again("per_minute", *meanings, replays, rereads=rereads, folded=["l-1"]))


AMOUNT = {"amount": "1"}
OTHER = BY.replace("amount: amount", "sum: amount")


def test_a_key_that_is_gone(tmp_path: Path) -> None:
    both = {**AMOUNT, "day": "4"}
    assert said(tmp_path, OTHER, AMOUNT, both, {"day": "4"}, {}) == [f"2 {MISSING}"]
    assert said(tmp_path, BY, AMOUNT, both, {}) == []


def test_a_key_that_means_something_else(tmp_path: Path) -> None:
    (found,) = said(tmp_path, BY.replace("amount: amount", "amount: amount + 1"), AMOUNT, {})
    assert found.startswith("1 replay of late rows by amount will be repeated with the new meaning")


def test_what_was_lost_before_is_not_told_again(tmp_path: Path) -> None:
    assert said(tmp_path, OTHER, {"was": "1"}, {"was": "1", **AMOUNT}) == []


def test_a_declaration_that_is_not_kept(tmp_path: Path) -> None:
    after = meaning_of(declare(tmp_path / "b.yml", OTHER))
    found = late_again("per_minute", None, after, asked(AMOUNT, AMOUNT), rereads=False)
    assert list(found) == [f"2 {MISSING}"]


def test_a_bronze_that_is_read_again_has_no_replays_but_those_of_loads(tmp_path: Path) -> None:
    """Loads fold their late rows again, except a load that a person has ended."""
    (found,) = said(tmp_path, BY, {}, rereads=True)
    assert found == "1 replay of late rows will not be repeated, and the rows will be late again"
    assert said(tmp_path, BY, {}, rereads=True, load="l-1") == []
    assert said(tmp_path, BY, {}, rereads=True, load="l-2") == [found]


@pytest.mark.usefixtures("ask")
def test_a_plan_says_it_and_names_the_command(tmp_path: Path, ask: Ask) -> None:
    lake = Lake(tmp_path / "lake", declare(tmp_path / "tiny.yml"))
    keep_declaration(lake.layout, lake.pipeline)
    for replay in asked(AMOUNT, AMOUNT):
        append(lake.control, replay.name, replay.document, here(lake), NOW)
    arguments = ("plan", lake.pipeline.file, "--root", tmp_path / "lake")
    assert "late again" not in ask(*arguments)[1]
    found = deployment_of(lake.layout, declare(tmp_path / "tiny.yml", OTHER))
    assert {plan.table for plan in found.tables if plan.late_again} == {"gold/per_minute"}
    code, out, _ = ask(*arguments)
    assert code == 0
    assert f"2 {MISSING}" in out
    assert "afterwards, the rows that are late again: " in out
    assert " late list " in out.splitlines()[-1]
