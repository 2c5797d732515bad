"""Expressions over nested values, and the Spark types they have, over ``SCOPE``.

With those of `expression_examples.py`, every allowed function is here.
"""

from __future__ import annotations

from headgate.declaration.type_parser import parse_type
from tests.unit.declaration import expression_examples as flat

_SCOPE = {
    "address": "struct<city: string, zip: int, at: struct<lat: double, lon: double>, `from`: date>",
    "items": "array<struct<sku: string, price: decimal(18,2), qty: int, sold: timestamp, "
    "tags: array<string>>>",
    "tags": "map<string, string>",
    "counts": "map<string, array<bigint>>",
    "ns": "array<bigint>",
    "xs": "array<double>",
    "days": "array<date>",
    "grid": "array<array<int>>",
    "texts": "array<string>",
    "maps": "array<map<string, int>>",
}
SCOPE = {**flat.SCOPE, **{name: parse_type(text) for name, text in _SCOPE.items()}}

NESTED = {
    "address.city": "string",
    "address.at.lat + address.at.lon": "double",
    "address.at": "struct<`lat`: double, `lon`: double>",
    "address.`from`": "date",
    "(address).zip": "int",
    "items[0].sku": "string",
    "items[i].price * items[i].qty": "decimal(29,2)",
    "items[-1].sku": "string",
    "items[0].tags[1]": "string",
    "items.price": "array<decimal(18,2)>",
    "items.tags": "array<array<string>>",
    "tags['k']": "string",
    "tags[s]": "string",
    "counts['k'][0]": "bigint",
    "grid[0][1]": "int",
    "items": "array<struct<`sku`: string, `price`: decimal(18,2), `qty`: int, `sold`: timestamp, "
    "`tags`: array<string>>>",
    "split(s, ',')": "array<string>",
    "coalesce(texts, split(s, ','))": "array<string>",
    "if(ok, address, null)": "struct<`city`: string, `zip`: int, "
    "`at`: struct<`lat`: double, `lon`: double>, `from`: date>",
    "case when ok then tags end": "map<string,string>",
    "ns = array_distinct(ns)": "boolean",
    "address <=> null": "boolean",
    "items is not null": "boolean",
    "items[0].sold + interval 1 day": "timestamp",
    "to_date(texts[0], 'yyyy-MM-dd')": "date",
    "exists(items, e -> e.price > 100 and not contains(e.sku, u))": "boolean",
    "exists(items, e -> exists(e.tags, y -> y = e.sku))": "boolean",
    "filter(ns, (e, k) -> k % 2 = 0 and e > i)": "array<bigint>",
    "filter(items, e -> e.sold + interval 1 hour > ts)[0].sku": "string",
    "size(filter(items, e -> e.qty > 1))": "int",
    "transform(items, e -> e.price * e.qty)": "array<decimal(29,2)>",
    "transform(items, e -> concat(e.sku, ': ', e.qty))": "array<string>",
    "transform(items, e -> filter(e.tags, y -> y <> e.sku))": "array<array<string>>",
    "transform(ns, (e, k) -> e + k)": "array<bigint>",
    "transform(days, e -> e + interval 1 day)[0]": "date",
    "aggregate(items, cast(0 as decimal(18,2)), (a, e) -> cast(a + e.price as decimal(18,2)))": (
        "decimal(18,2)"
    ),
    "aggregate(ns, 0L, (a, e) -> a + e, a -> a / 2)": "double",
    "aggregate(items, ts, (a, e) -> greatest(a, e.sold))": "timestamp",
    "reduce(xs, true, (a, e) -> a and e > 0)": "boolean",
    "exists(texts, e -> to_date(e, 'yyyy-MM-dd') > d)": "boolean",
    "exists(texts, e -> cast(e as date) > d)": "boolean",
}

# Calls by their type, separated by bars.
_CALLS = {
    "string": r"""
        array_max(texts) | element_at(tags, 'k') | element_at(texts, -1)
    """,
    "int": r"""
        size(tags) | cardinality(items) | cardinality(counts) | nvl2(items, 1, 2)
    """,
    "bigint": r"""
        array_min(ns) | element_at(counts['k'], 1) | array_position(ns, 2)
        array_position(ns, w) | array_position(items.price, 1) | array_position(xs, i)
        array_position(items.price, p)
        reduce(ns, 0L, (a, e) -> a + e)
    """,
    "boolean": r"""
        array_contains(ns, 1) | array_contains(ns, 1.5) | array_contains(days, d)
        array_contains(grid, grid[0]) | map_contains_key(tags, 'k') | exists(ns, e -> e > 1)
        forall(xs, e -> e > 1) | exists(ns, e -> e in (1, 2)) | exists(maps, e -> e['k'] = 1)
    """,
    "array<bigint>": r"""
        array_distinct(ns) | array_compact(ns) | sort_array(ns) | sort_array(ns, false)
        filter(ns, e -> e > 1) | transform(texts, e -> cast(e as bigint))
        element_at(counts, 'k')
    """,
    "array<string>": r"""
        map_keys(tags) | map_values(tags) | map_keys(counts) | nvl(texts, map_keys(tags))
    """,
    "array<array<bigint>>": r"""
        map_values(counts)
    """,
    "array<array<int>>": r"""
        sort_array(grid)
    """,
}
CALLS = {
    call: type_
    for type_, block in _CALLS.items()
    for line in block.strip().splitlines()
    for call in line.strip().split(" | ")
}

EXAMPLES = {**flat.EXAMPLES, **NESTED, **CALLS}
