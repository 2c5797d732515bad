"""A declaration to change, and the problems of the changed one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError, DeclarationProblem
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline

BASE = """\
pipeline: shop
sources:
  orders:
    files: {path: landing/orders, format: json}
    record:
      event_id: [order_id]
      event_time: {column: ordered_at}
      duplicates: {within: 10 minutes}
      schema:
        order_id: string
        customer: bigint
        price: decimal(18,2)
        quantity: int
        weight: double
        note: string
        paid: boolean
        day: date
        ordered_at: timestamp
silver:
  clean:
    from: orders
    columns:
      note: lower(note)
    drop: [weight]
    where: price > 0
gold:
  sales:
    from: clean
    window: {tumbling: 1 minute}
    by: [customer]
    measures:
      orders: count(*)
      revenue: sum(price)
    columns:
      mean: revenue / orders
    allowed_lateness: 10 seconds
jobs: fused
"""

_FILES = "    files: {path: landing/orders, format: json}\n"
_KAFKA = """\
    kafka:
      servers: localhost:9092
      topic: orders
      start: earliest
      idle_after: 1 minute
      options:
        client.id: shop
"""
_PUBLISH = """\
publish:
  finals:
    from: gold.sales
    when: final
    kafka:
      servers: localhost:9092
      topic: finals
      options:
        client.id: shop
"""
KAFKA = BASE.replace(_FILES, _KAFKA) + _PUBLISH


@pytest.fixture(name="kafka")
def kafka_text() -> str:
    """The declaration with Kafka as its source and its sink."""
    return KAFKA


@pytest.fixture(name="base")
def base_text() -> str:
    return BASE


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Pipeline]:
    """Load a declaration of this text."""

    def load_text(text: str) -> Pipeline:
        file = tmp_path / "shop.yml"
        file.write_text(text, encoding="utf-8")
        return load(file)

    return load_text


@pytest.fixture
def refuse(read: Callable[[str], Pipeline]) -> Callable[[str], tuple[DeclarationProblem, ...]]:
    """Load a declaration with mistakes from this text, and return its problems."""

    def problems_of(text: str) -> tuple[DeclarationProblem, ...]:
        with pytest.raises(DeclarationError) as caught:
            read(text)
        return caught.value.problems

    return problems_of
