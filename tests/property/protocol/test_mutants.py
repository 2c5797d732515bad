"""Every rule is needed: without it, the search finds a violation. So the search does find them.

A rule that only backs up another one is left out together with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.property.protocol.rules import Rule
from tests.property.protocol.scenario import GOOD, LATE, Scenario
from tests.property.protocol.search import explore
from tests.property.protocol.test_search import LAYERS, SCENARIOS
from tests.property.protocol.test_sources import SOURCES
from tests.support.rounds import IN_FULL


class Mutant(NamedTuple):
    """Without the ``rules``, a search of ``scenario`` finds a violation of this ``kind`` whose
    text holds ``words``."""

    rules: tuple[Rule, ...]
    scenario: Scenario
    kind: str
    words: str


TWO = Scenario((GOOD, LATE))
CLOSE = Scenario((GOOD, GOOD), drains=1)
PER_LAYER = Scenario((GOOD, LATE), roles=LAYERS, finish=(LAYERS,))
CLOSE_PER_LAYER = SCENARIOS["per layer, close windows"]
COMPACT_PER_LAYER = SCENARIOS["per layer, compact"]
RESTORE = SCENARIOS["restore"]
ANEW = SCENARIOS["rebuild beside gold"]
BESIDE_SILVER = SCENARIOS["restore beside silver"]
BESIDE_GOLD = SCENARIOS["restore beside gold"]
TWO_RESETS = SCENARIOS["reread, then rebuild"]
TWO_PASTS = SCENARIOS["reread, then restore what was before"]
VOID = SCENARIOS["restore, with a closing that was taken back"]
VOIDED = SCENARIOS["restore a closing that was taken back"]
AROUND = SCENARIOS["savepoint, around a closing, reread"]
ADDED = SOURCES["reread of before a source was added"]
ABSENT = SOURCES["a source is absent at an operation"]
REMOVED = SOURCES["restore while a source is removed"]
CUT_BETWEEN = SOURCES["savepoint around a closing, reread"]
REREADING = SOURCES["rebuild of the bronze of one"]
MEANWHILE = SCENARIOS["savepoint, while bronze goes back"]
TWICE = "bronze holds [0, 0, 1, 1], prescribed is [0, 1]"

MUTANTS = [
    Mutant((Rule.APP_TRANSACTION,), TWO, "damage", "the position of bronze fell"),
    Mutant((Rule.OLD_HANDLE,), TWO, "damage", TWICE),
    Mutant((Rule.REFUSED_ENDS,), TWO, "damage", TWICE),
    Mutant((Rule.UNIQUE_ATTEMPT,), TWO, "damage", "bronze holds [0, 1], prescribed is [0]"),
    Mutant((Rule.COPY_FORWARD,), TWO, "damage", "the position of files fell"),
    Mutant((Rule.RISING_EPOCH,), TWO, "stuck", "refused, though nobody took over"),
    Mutant((Rule.EPOCH_CHECK,), TWO, "zombie", "bronze accepted a commit of epoch 1 after 2"),
    Mutant((Rule.FENCE,), TWO, "stuck", "though nobody took over"),
    Mutant((Rule.FENCE_EVERY_TABLE,), TWO, "stuck", "refused, though nobody took over"),
    Mutant((Rule.FENCE_CHECK,), TWO, "zombie", "control accepted a commit of epoch 1 after 2"),
    Mutant((Rule.FENCE_OWN_LAYER,), PER_LAYER, "stuck", "bronze driver ended: fenced, though"),
    Mutant((Rule.CHECKPOINT_IN_BRONZE,), TWO, "stuck", "bronze ended elsewhere"),
    Mutant((Rule.CHECKPOINT_IN_BRONZE, Rule.RANGE_CHECK), TWO, "damage", TWICE),
    Mutant((Rule.START_AFTER_FENCE,), TWO, "stuck", "bronze ended elsewhere"),
    Mutant((Rule.START_AFTER_FENCE, Rule.RANGE_CHECK), TWO, "damage", TWICE),
    Mutant((Rule.FILES_LOG_FENCED,), SCENARIOS["list files"], "damage", "position of files fell"),
    Mutant((Rule.CATCH_UP_AT_START,), TWO, "stuck", "stages are left behind"),
    Mutant((Rule.WHOLE_RANGE,), PER_LAYER, "damage", "silver holds [1], prescribed is [0, 1]"),
    Mutant((Rule.NO_MORE_THAN_RANGE,), PER_LAYER, "damage", "silver holds [0, 1], prescribed is"),
    Mutant((Rule.SIDE_FIRST,), TWO, "damage", "late holds [], prescribed is [1]"),
    Mutant((Rule.SIDE_LOWER_BOUND,), CLOSE, "damage", "late holds"),
    Mutant((Rule.SIDE_LOWER_BOUND,), SCENARIOS["compact"], "stuck", "gap"),
    Mutant(
        (Rule.PINNED_DEFINITION,),
        SCENARIOS["change the declaration"],
        "damage",
        "quarantine holds [0], prescribed is []",
    ),
    Mutant((Rule.DECISION_FENCED,), CLOSE, "zombie", "control accepted a commit of epoch 1"),
    Mutant((Rule.DECISION_FENCED,), CLOSE, "damage", "the position of control fell"),
    Mutant((Rule.CONTROL_FENCED,), CLOSE, "damage", "operations"),
    Mutant((Rule.POSITION_OF_BRONZE,), CLOSE_PER_LAYER, "damage", "operations"),
    Mutant((Rule.OPERATION_ONCE,), CLOSE, "damage", "operations (o, n) [(1, 0), (1, 0)"),
    Mutant((Rule.SILVER_STOPS,), CLOSE_PER_LAYER, "stuck", "gap"),
    Mutant(
        (Rule.GOLD_STOPS,),
        CLOSE_PER_LAYER,
        "damage",
        "operations (o, n) [(1, 1)], decided [(1, 0)]",
    ),
    Mutant((Rule.DECISIONS_READ_LAST,), CLOSE_PER_LAYER, "stuck", "gap"),
    Mutant((Rule.DECISIONS_READ_LAST,), CLOSE_PER_LAYER, "damage", "late holds [], prescribed is"),
    Mutant((Rule.COMPACT_PROCESSED,), COMPACT_PER_LAYER, "stuck", "gap"),
    # Operations of rebuilt tables, resets, savepoints
    Mutant((Rule.CLOSED_AGAIN,), ANEW, "damage", "late holds [], prescribed is [2]"),
    Mutant((Rule.RESTORE_FENCES,), TWO_RESETS, "stuck", "refused, though nobody took over"),
    Mutant((Rule.ONE_DECISION,), RESTORE, "stuck", "gap"),
    Mutant((Rule.ONE_DECISION,), TWO_RESETS, "damage", "silver holds [0, 1], prescribed is [0]"),
    Mutant((Rule.SIDES_TOO,), SCENARIOS["reread"], "damage", "late holds"),
    Mutant((Rule.NEWEST_BY_TABLE,), TWO_RESETS, "damage", "gold holds [0, 1, 2], prescribed is"),
    Mutant((Rule.NEWEST_BY_TABLE,), SCENARIOS["reread, then restore"], "stuck", "a reset is left"),
    Mutant(
        (Rule.ASKED_ANEW,), SCENARIOS["restore twice"], "stuck", "silver is not what was wanted"
    ),
    Mutant((Rule.SAME_PAST,), TWO_PASTS, "damage", "silver is ahead of bronze"),
    Mutant((Rule.BATCH_IDENTITY,), SCENARIOS["reread sideways"], "damage", "silver holds"),
    Mutant((Rule.VOID_LATER,), SCENARIOS["reread"], "damage", "operations"),
    Mutant((Rule.VOID_AGAIN,), VOID, "damage", "operations"),
    Mutant((Rule.IN_FORCE_AGAIN,), VOIDED, "damage", "operations"),
    Mutant((Rule.RESET_ENDS,), BESIDE_GOLD, "stuck", "a reset is left open"),
    Mutant((Rule.RESET_ENDS,), BESIDE_SILVER, "damage", "quarantine holds []"),
    Mutant((Rule.RESET_AT_START, Rule.RESET_ENDS), RESTORE, "stuck", "a reset is left"),
    Mutant(
        (Rule.PUBLICATION_TAKEN,), SCENARIOS["publish beside jobs"], "stuck", "a reset is left open"
    ),
    Mutant((Rule.SILVER_WAITS,), SCENARIOS["reread"], "damage", "silver"),
    Mutant((Rule.GOLD_WAITS,), BESIDE_GOLD, "stuck", "gap"),
    Mutant((Rule.GOLD_WAITS,), SCENARIOS["reread"], "damage", "gold holds"),
    Mutant((Rule.NEW_GENERATION,), RESTORE, "stuck", "a reset is left open"),
    Mutant((Rule.TARGET_POSITION,), BESIDE_SILVER, "damage", "holds [], prescribed is"),
    Mutant((Rule.TARGET_STATE,), RESTORE, "damage", "late holds [0, 2], prescribed is [2]"),
    Mutant((Rule.LINEAGE,), TWO_RESETS, "stuck", "gap"),
    Mutant((Rule.CUT_UPWARDS,), SCENARIOS["savepoint, of jobs per layer"], "stuck", "gap"),
    Mutant((Rule.CUT_UPWARDS,), SCENARIOS["savepoint, copied"], "damage", "of a copy"),
    Mutant((Rule.CUT_DECISIONS,), AROUND, "damage", "operations in force at"),
    Mutant((Rule.CUT_WHOLE,), MEANWHILE, "damage", "silver holds [0, 1], prescribed is [0, 1, 2]"),
    # Several sources
    Mutant((Rule.FAILING_ALONE,), SOURCES["a source fails"], "stuck", "files are left unread"),
    Mutant((Rule.DAMAGED_ALONE,), SOURCES["a source is damaged"], "stuck", "a is damaged, though"),
    Mutant((Rule.POSITION_BY_SOURCE,), SOURCES["close windows"], "damage", "gold b: operations"),
    Mutant((Rule.ADDED_UNTOUCHED,), SOURCES["a source is added"], "damage", "gold b: operations"),
    Mutant((Rule.ADDED_UNTOUCHED,), ABSENT, "damage", "gold b: operations"),
    Mutant(
        (Rule.LEFT_FENCED,),
        SOURCES["a source is removed"],
        "zombie",
        "bronze b would accept a commit of an older driver",
    ),
    Mutant(
        (Rule.PAST_OF_EACH,), SOURCES["one source has another past"], "damage", "silver b holds"
    ),
    Mutant((Rule.VOID_BY_SOURCE,), ADDED, "damage", "operations"),
    Mutant((Rule.VOID_OF_LEFT,), REMOVED, "damage", "operations"),
    Mutant(
        (Rule.NEWEST_BY_TABLE,),
        SOURCES["reread, then rebuild of one"],
        "damage",
        "silver b holds [1], prescribed is []",
    ),
    Mutant((Rule.REBUILT_WAITS,), REREADING, "damage", "are in force, not"),
    Mutant((Rule.CUT_BY_KIND,), CUT_BETWEEN, "damage", "gold b: operations"),
]


def label(mutant: Mutant) -> str:
    return f"{'+'.join(rule.name for rule in mutant.rules)}-{mutant.kind}"


@pytest.mark.parametrize("mutant", MUTANTS if IN_FULL else MUTANTS[::9], ids=label)
def test_without_the_rule_the_search_finds_what_breaks(mutant: Mutant) -> None:
    scenario = replace(mutant.scenario, without=frozenset(mutant.rules))
    findings = explore(scenario, frozenset({mutant.kind}))
    assert findings.violation is not None
    assert mutant.words in findings.violation.text


def test_every_rule_has_a_mutant() -> None:
    assert {rule for mutant in MUTANTS for rule in mutant.rules} == set(Rule)


def test_a_violation_comes_with_the_steps_that_lead_to_it() -> None:
    findings = explore(replace(TWO, without=frozenset({Rule.FENCE_CHECK})))
    assert findings.trace == [
        "0: fused lease",
        "1: fused lease",
        "1: fused fence control",
        "1: fused fence commit control",
        "0: fused fence control",
        "0: fused fence commit control",
    ]
