"""The unique index of declared keys."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror, reset_publication
from headgate.flow.publish.sinks.writers import (
    KEY,
    SinkContext,
    SinkRefusalError,
    VersionDifference,
)
from tests.support.postgres import Server, is_there
from tests.unit.flow.publish.sinks.postgres.conftest import CONTEXT, rows, sales, sink_of, step

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")


def test_keys_are_a_unique_index(server: Server) -> None:
    with closing(PostgresMirror(sink_of(server, keys=("total", "shop")), CONTEXT)) as found:
        found.apply(step(rows(("a", 1)), 1))
    ((index,),) = server.ask(
        "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%headgate_keys'"
    )
    assert "UNIQUE" in index
    assert "(total, shop)" in index
    reset_publication(sink_of(server), CONTEXT)
    few = PostgresMirror(sink_of(server, keys=("total",)), CONTEXT)
    with pytest.raises(SinkRefusalError, match="add shop to the keys"):
        few.apply(step(rows(("a", 1)), 1))


_INDEXES = "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%headgate_keys' ORDER BY 1"


def _keyed(
    server: Server, keys: tuple[str, ...], difference: VersionDifference, **more: Any
) -> None:
    sink = sink_of(server, keys=keys, **more)
    context = SinkContext("shop", sink.table, CONTEXT.storage)
    with closing(PostgresMirror(sink, context)) as found:
        found.apply(replace(difference, keys=keys))


def _several(*values: tuple[str, int]) -> pa.Table:
    keys = [f"{shop}{total}".encode() for shop, total in values]
    return rows(*values).set_column(0, KEY, pa.array(keys, pa.binary()))


def test_keys_can_change(server: Server) -> None:
    """In both directions."""
    _keyed(server, ("shop",), step(_several(("a", 1)), 1))
    whole = replace(step(_several(("a", 1), ("a", 2)), 2, 1), gone=None)
    _keyed(server, ("shop", "total"), whole)
    assert sales(server) == [("a", 1), ("a", 2)]
    ((index,),) = server.ask(_INDEXES)
    assert index.endswith("(shop, total)")
    _keyed(server, ("shop",), replace(step(_several(("a", 2)), 3, 2), gone=None))
    assert sales(server) == [("a", 2)]
    ((index,),) = server.ask(_INDEXES)
    assert index.endswith("(shop)")
    _keyed(server, (), step(_several(("a", 3)), 4, 3))
    assert server.ask(_INDEXES) == []


def test_an_index_of_the_same_keys_stays(server: Server) -> None:
    _keyed(server, ("shop",), step(rows(("a", 1)), 1))
    before = server.ask("SELECT oid FROM pg_class WHERE relname LIKE '%_keys'")
    _keyed(server, ("shop",), step(rows(("b", 2)), 2, 1))
    assert server.ask("SELECT oid FROM pg_class WHERE relname LIKE '%_keys'") == before


def test_a_reset_drops_the_index_of_the_keys_too(server: Server) -> None:
    _keyed(server, ("shop",), step(rows(("a", 1)), 1))
    reset_publication(sink_of(server), CONTEXT)
    assert server.ask(_INDEXES) == []


def test_each_table_gets_its_index(server: Server) -> None:
    """Also if long names begin alike, or if a renamed table has kept its index."""
    tables = [f"{'x' * 62}{end}" for end in "ab"]
    for table in tables:
        _keyed(server, ("shop",), step(rows(("a", 1)), 1), table=table)
    server.ask(f"ALTER TABLE {tables[0]} RENAME TO kept; DELETE FROM headgate_publications")
    _keyed(server, ("shop",), step(rows(("a", 1)), 1), table=tables[0])
    found = server.ask("SELECT tablename FROM pg_indexes WHERE indexname LIKE '%headgate_keys'")
    assert sorted(name for (name,) in found) == ["kept", *tables]


_OTHERS = (
    "",
    f"CREATE UNIQUE INDEX ON sales ({KEY}) WHERE total > 0",
    f"CREATE UNIQUE INDEX ON sales ({KEY}, total)",
    f"CREATE INDEX ON sales ({KEY})",
)


@pytest.mark.parametrize("other", _OTHERS)
def test_a_table_that_has_lost_its_primary_key(
    server: Server, mirror: PostgresMirror, other: str
) -> None:
    mirror.apply(step(rows(("a", 1)), 1))
    server.ask(f"ALTER TABLE sales DROP CONSTRAINT sales_pkey; {other}")
    mirror.close()
    with pytest.raises(SinkRefusalError, match="has lost its primary key") as refused:
        mirror.apply(step(rows(("a", 2)), 2, 1))
    server.ask(str(refused.value).partition("type: ")[2])
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]


@pytest.mark.parametrize("type_", ["text", "text PRIMARY KEY"])
def test_a_table_that_was_created_with_another_primary_key_or_none(
    server: Server, mirror: PostgresMirror, type_: str
) -> None:
    server.ask(f"CREATE TABLE sales ({KEY} bytea, total bigint, shop {type_})")
    mirror.apply(step(rows(("a", 1)), 1))
    mirror.apply(step(rows(("a", 2)), 2, 1))
    assert sales(server) == [("a", 2)]
