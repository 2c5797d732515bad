"""Publications to every sink, for the contract's tests. Each new sink needs a case here."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline

DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {{path: landing, format: json}}
    record: {{event_id: [id], event_time: {{column: at}}, schema: {{id: string, at: timestamp}}}}
silver: {{clean: {{from: orders}}}}
gold:
  per_hour:
    from: clean
    window: {{tumbling: 1 hour}}
    measures: {{all: count(*)}}
    allowed_lateness: 0 s
publish:
  finals: {{from: {source}, {sink}}}
"""
SECRET = "hunter22"


@dataclass(frozen=True)
class Case:
    """``key`` of a sink with all its options, its one secret in ``$SECRET``; a ``wrong`` key is
    reported at the path ``at`` with the text ``problem``."""

    name: str
    key: str
    wrong: str
    at: str
    problem: str
    has_secret: bool = True


CASES = (
    Case(
        "kafka",
        "kafka: {servers: 'localhost:9092', topic: finals, "
        "options: {sasl.mechanism: PLAIN, ssl.key.password: '${env:SECRET}'}}",
        "kafka: {servers: 'localhost:9092', topic: 'a b'}",
        "kafka.topic",
        "is not the name of a topic",
    ),
    Case(
        "postgres",
        "postgres: {url: 'postgresql://ann:${env:SECRET}@db/shop', table: sales.finals, "
        "keys: [window_start]}",
        "postgres: {url: 'postgresql://db/shop', table: a b}",
        "postgres.table",
        "is not TABLE or SCHEMA.TABLE",
    ),
    Case(
        "webhook",
        "webhook: {url: 'https://receiver.example/x', secret: '${env:SECRET}', attempts: 3, "
        "headers: {X-Team: a, Authorization: '${env:SECRET}'}}",
        "webhook: {url: 'http://receiver.example/x'}",
        "webhook.url",
        "is not encrypted",
    ),
    Case(
        "jsonl",
        "jsonl: {path: /x/finals.jsonl, password: '${env:SECRET}'}",
        "jsonl: {path: /x/finals.csv}",
        "jsonl.path",
        "does not end with .jsonl",
    ),
    Case(
        "book",
        "book: {path: /x/finals.db}",
        "book: {path: ' '}",
        "book.path",
        "is empty",
        has_secret=False,
    ),
)


def declared(sink: str, source: str = "gold.per_hour") -> Pipeline:
    """A pipeline with one publication. Raises DeclarationError."""
    return load("/shop/pipelines/shop.yml", text=DECLARATION.format(sink=sink, source=source))
