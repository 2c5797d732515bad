"""The graph of a declaration's tables; no other module knows the paths of tables."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import headgate.errors
from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import (
    BRONZE,
    CONTROL,
    FILES,
    GOLD,
    INPUTS,
    KINDS,
    LATE,
    PUBLICATION,
    QUARANTINE,
    REJECTED,
    SILVER,
    kind_of,
    name_of,
)
from headgate.declaration.load import load

PACKAGE = Path(headgate.errors.__file__).parent
FOLDERS = re.compile(r"(bronze|silver|gold|late|quarantine|rejected)/($|[{\w])")
DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, at: timestamp, amount: "decimal(8,2)"}
silver:
  paid: {from: orders, where: amount > 0}
  free: {from: orders, where: amount = 0, expectations: free}
gold:
  per_hour:
    from: paid
    window: {tumbling: 1 hour}
    measures: {n: count(*)}
    allowed_lateness: 1 minute
  per_day:
    from: paid
    window: {tumbling: 1 day}
    measures: {n: count(*)}
    allowed_lateness: 1 minute
publish:
  rows: {from: gold.per_hour, when: final, kafka: {servers: "localhost:9092", topic: t}}
  bad: {from: quarantine.orders, kafka: {servers: "localhost:9092", topic: q}}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    suites = {"free": "expectations: [{id: small, expect: amount < 9}]"}
    return graph_of(load(tmp_path / "shop.yml", text=DECLARATION, suites=suites))


def test_a_table_stands_after_those_that_feed_it_and_a_side_table_before_its_table(
    graph: Graph,
) -> None:
    seen: set[str] = set()
    for node in graph:
        assert seen.issuperset(node.upstream)
        assert seen.issuperset(node.sides.values())
        seen.add(node.path)
    assert {kind_of(path) for path in seen} == set(KINDS) - {INPUTS}


def test_each_job_writes_its_tables_and_follows_those_of_the_job_above(graph: Graph) -> None:
    def paths(*layers: str) -> set[str]:
        return {node.path for node in graph.written_by(layers)}

    assert paths("bronze") == {
        "_headgate/control/decisions",
        "_headgate/files/orders",
        "bronze/orders",
    }
    assert paths("silver") == {
        "quarantine/orders",
        "silver/paid",
        "rejected/free",
        "silver/free",
        "_headgate/publish/bad",
    }
    assert paths("gold") == {
        *("late/per_hour", "gold/per_hour", "late/per_day", "gold/per_day"),
        "_headgate/publish/rows",
    }
    assert [n.path for n in graph.read_by(["gold"])] == ["silver/paid"]
    assert [n.path for n in graph.read_by(["silver", "gold"])] == ["bronze/orders"]
    assert graph.read_by(["bronze", "silver", "gold"]) == ()


def test_it_has_the_tables_that_are_declared(graph: Graph) -> None:
    assert "gold/per_day" in graph
    assert "gold/per_week" not in graph


def test_a_rebuild_takes_all_that_is_built_on_a_table_and_its_side_table(graph: Graph) -> None:
    gold = {"gold/per_hour", "late/per_hour"}
    silver = {"silver/paid", "gold/per_day", "late/per_day", *gold}
    assert graph.rebuilt_with(["gold/per_hour"]) == gold
    assert graph.rebuilt_with(["silver/paid"]) == silver
    assert graph.rebuilt_with(["silver/free"]) == {"silver/free", "rejected/free"}
    everything = {*silver, "silver/free", "rejected/free", "quarantine/orders", "bronze/orders"}
    assert graph.rebuilt_with(["bronze/orders"]) == everything
    assert graph.rebuilt_with([]) == frozenset()


def test_every_table_has_one_source(graph: Graph) -> None:
    built = graph.of(QUARANTINE, REJECTED, SILVER, LATE, GOLD, PUBLICATION)
    assert {graph.numbered_by(node.path).path for node in built} == {"bronze/orders"}


def test_paths_are_made_and_taken_apart_alike() -> None:
    for kind in KINDS:
        path = kind.path("orders_2")
        assert (kind_of(path), name_of(path)) == (kind, "orders_2")
    with pytest.raises(KeyError):
        kind_of("_headgate/rebuild/7")
    assert [k for k in KINDS if k.is_dense] == [SILVER, GOLD]
    assert [k for k in KINDS if not k.is_built] == [CONTROL, FILES, BRONZE, PUBLICATION]


@pytest.mark.slow
def test_no_other_module_knows_where_tables_lie() -> None:
    """A module that lists path prefixes would miss a new kind of table."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        if file.name == "kinds.py":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        said = {
            id(body[0].value)
            for node in ast.walk(tree)
            if (body := getattr(node, "body", None))
            and isinstance(body, list)
            and isinstance(body[0], ast.Expr)
        }
        found += [
            f"{file.relative_to(PACKAGE)}:{node.lineno}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in said
            and FOLDERS.match(node.value)
        ]
    assert found == []
