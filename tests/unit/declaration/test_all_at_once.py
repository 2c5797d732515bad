"""One load reports every mistake, and each cause only once."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from headgate.declaration.errors import DeclarationError, DeclarationProblem
from headgate.declaration.load import load
from tests.support.rounds import IN_FULL
from tests.unit.declaration.conftest import BASE, KAFKA
from tests.unit.declaration.test_mutations import paths
from tests.unit.declaration.test_wrong_declarations import (
    COLUMNS,
    EXPRESSIONS,
    KEYS,
    NAMES,
    NEXT,
    SHAPES,
    TIMES,
    Wrong,
)
from tests.unit.declaration.test_wrong_declarations import YAML as SYNTAX

Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

# The comment of a line is what its problems must say, separated by ;.
ALL_WRONG = """\
pipeline: Shop # is not a name
sources:
  orders:
    files: {path: landing/orders, fromat: jsn, settle: 2} # unknown key; json, csv; has no unit
    record:
      event_id: [orderid, weight] # no column 'orderid'; no exact text
      event_time: {column: orderd_at, format: epoch, zone: Mars} # no column; a format is; IANA
      duplicates: {within: 10 minuts, difering: warm} # unit of time; unknown key; warn, keep
      future_after: soon # not a duration
      schema:
        order_id: string
        customer: bigint
        price: decimal(18;2) # a precision
        quantity: int
        weight: double
        note: text # not a supported type
        address: struct<city strng> # city:
        unit-count: int # is not a name
        ordered_at: timestamp
  returns: 5 # must be a map
silver:
  clean:
    from: order # no source
    colums: # unknown key
      note: lowr(nte) # unknown function; 'nte'
      short: substring(order_id, 1 # near
      total: price * prise + qantity # 'prise'; 'qantity'
      label: 'a' || order_id # is not YAML
    drop: [wieght] # no column 'wieght'
    where: quantity # a condition
    retain: 30 days # not built yet
  5 clean: {from: orders, where: quanity > 0} # is not a name; unknown column 'quanity'
gold:
  sales:
    from: cleen # no silver or gold table
    window: {session: 10 parsecs} # unit of time
    where: customer > '5' # compares a bigint
    by: [custmer] # no column 'custmer'
    measure: # unknown key
      orders: count(*)
      items: sun(quantity) # not a measure
      revenue: sum(price)
      unitPrice: avg(price) # is not a name
    columns:
      mean: revenue / ordrs # 'ordrs'
      ratio: items / orderz + lower(5) # 'orderz'; takes a string
    allowed_latness: -1 s # unknown key; is negative
  clean: # is taken; 'allowed_lateness' is missing
    from: clean
    window: {hopping: {size: 5 minutes, every: 2 minutes}} # not a multiple
    measures: [count] # must be a map
    columns:
      mean: revenue / orders
publish:
  finals:
    from: gold.sale # no gold table
    kafka: {servers: localhost, topic: b/c, options: {group.id: x}} # no port; topic; by Headgate
savepoints: {every: 1 fortnight, keep: 0} # unit of time; too little
circuit_breaker: {batches: 5} # needs refused_above
jobs: fusd # fused, per_layer
airflow: {backfill: {every: 1 minute, publish: always}} # at least; no effect without mode
pipeline: shop # given twice
"""


def test_every_mistake_of_every_section_is_told_at_once(refuse: Refuse) -> None:
    told: dict[int, list[str]] = {}
    for problem in refuse(ALL_WRONG):
        told.setdefault(problem.line, []).append(problem.message)
    wanted = {
        number: said[1].split("; ")
        for number, line in enumerate(ALL_WRONG.splitlines(), 1)
        if len(said := line.split(" # ")) > 1
    }
    assert told.keys() == wanted.keys()
    for line, messages in told.items():
        assert len(messages) == len(wanted[line]), messages
        for words in wanted[line]:
            assert any(words in message for message in messages), (line, words, messages)


TREE = YAML(typ="safe", pure=True).load(KAFKA)
PLACES = [path for path in paths(TREE) if not isinstance(path[-1], int)]


def changed(path: tuple[Any, ...], *, value: object = None) -> str:
    """The declaration with ``value`` at ``path``, or without that key if ``value`` is None."""
    tree = copy.deepcopy(TREE)
    holder = tree
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    if value is not None:
        holder[path[-1]] = value
    return json.dumps(tree)  # JSON is YAML


@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_one_cause_is_told_once(path: tuple[str, ...], refuse: Refuse) -> None:
    """If a value has a wrong shape or is missing, nothing that depends on it is reported."""
    (problem,) = refuse(changed(path, value=[["x"]]))
    assert problem.key == ".".join(path)
    without = problems_of(changed(path))
    missing = [p for p in without if "is missing" in p.message or "exactly one" in p.message]
    assert len(without) == 1 or not missing


def problems_of(text: str) -> tuple[DeclarationProblem, ...]:
    try:
        load("shop.yml", text=text)
    except DeclarationError as error:
        return error.problems
    return ()


# These change the type or the set of columns, so what uses a column cannot be checked.
SOURCES_OF_TYPES = ("schema", "event_time", "silver.clean.columns", "gold.sales.by", "measures")
APART = [
    wrong
    for wrong in (*KEYS, *SHAPES, *NAMES, *COLUMNS, *TIMES, *EXPRESSIONS, *NEXT, *SYNTAX)
    if not any(name in wrong.key for name in SOURCES_OF_TYPES)
    # These keys replace others, which are then not reported as missing.
    and wrong.key.rpartition(".")[2] not in ("latest", "join", "process", "sql", "transform")
    # Some windows need no lateness, so it is not reported as missing beside a wrong window.
    and wrong.says != "'allowed_lateness'"
]


def section(wrong: Wrong) -> str:
    """The section that has the mistake. Two mistakes of one section are not put together."""
    late = ("jobs:", "allowed_lateness", "    columns:\n      mean", "window:", "gold:", "drop:")
    names = (*late, "silver:", "duplicates:", "record:", "sources:", "pipeline:")
    return next(name for name in names if BASE.index(name) <= BASE.index(wrong.old))


@settings(max_examples=1000 if IN_FULL else 25)
@given(mistakes=st.lists(st.sampled_from(APART), min_size=2, max_size=5, unique_by=section))
def test_no_mistake_hides_another(mistakes: list[Wrong]) -> None:
    text = BASE
    for wrong in mistakes:
        assume(wrong.old in text)
        text = text.replace(wrong.old, wrong.new, 1)
    problems = problems_of(text)
    for wrong in mistakes:
        assert any(wrong.says in problem.message for problem in problems), (wrong, problems)
    assert len(problems) == len(mistakes)
