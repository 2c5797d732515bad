"""Every key of a declaration: its shape, whether it is required, its default and its meaning.

The loader checks files against this table; the JSON Schema for editors and the keys in
``docs/declaration.md`` are generated from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.keys.key import Key, comes_next
from headgate.declaration.keys.settings import AIRFLOW, CIRCUIT_BREAKER, METRICS, SAVEPOINTS
from headgate.declaration.keys.source import source_key
from headgate.declaration.keys.tables import SILVER, gold_key
from headgate.declaration.model import Pipeline

WHEN = ("final", "update")
_ROWS = (
    Key(
        "from",
        "text",
        "The table: `gold.TABLE`, `late.TABLE` (TABLE is a gold table) or `quarantine.SOURCE`; or "
        "`gate.TABLE`: each time that the rules of a gold table hold a version, that a person "
        "releases it, or that it passes after all.",
        required=True,
    ),
    Key(
        "when",
        "choice",
        "For gold only: send a row when its window is `final`, or on each `update`, including "
        "open windows.",
        default=WHEN[0],
        choices=WHEN,
    ),
)


def publication_key() -> Key:
    """The key of a publication. It contains a key for each sink that is installed, of which one is
    given."""
    names = SINKS.names()
    is_only = len(names) == 1
    sinks = (replace(SINKS[name].key, required=is_only) for name in names)
    return Key(
        "NAME",
        "section",
        "The rows of one table, sent to a sink.",
        one_of=() if is_only else names,
        children=(*_ROWS, *sinks),
    )


def pipeline_key() -> Key:
    """The whole table: members of other installed packages may add keys."""
    return Key(
        "",
        "section",
        "One file declares one pipeline.",
        children=(
            Key("pipeline", "name", "The name of the pipeline and its folder.", required=True),
            Key(
                "sources",
                "table",
                "Where records come from. A silver table reads one of them.",
                required=True,
                entry=source_key(),
            ),
            Key("silver", "table", "Silver tables.", required=True, entry=SILVER),
            Key("gold", "table", "Gold tables.", entry=gold_key()),
            Key("publish", "table", "Rows that go to other systems.", entry=publication_key()),
            Key(
                "jobs",
                "choice",
                "`fused`: one process runs all layers; `per_layer`: one process per layer. You can "
                "change it at any time.",
                default=Pipeline.jobs,
                choices=("fused", "per_layer"),
            ),
            SAVEPOINTS,
            CIRCUIT_BREAKER,
            METRICS,
            AIRFLOW,
            comes_next("functions", "write the expressions out in `columns`"),
            comes_next("partition_by"),
            comes_next("retain"),
        ),
    )


def durations() -> frozenset[str]:
    """The names of the keys that are durations."""
    return frozenset(key.name for key in _within(pipeline_key()) if key.kind == "duration")


def _within(key: Key) -> Iterator[Key]:
    yield key
    for child in (*key.children, *((key.entry,) if key.entry else ())):
        yield from _within(child)
