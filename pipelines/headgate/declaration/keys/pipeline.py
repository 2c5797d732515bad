"""Every key of a declaration, once: its shape, whether it must be there, default and meaning.

The loader checks files against this table; the JSON Schema for editors and
``docs/declaration.md`` are generated from it.
"""

from __future__ import annotations

from headgate.declaration.kafka.keys import PUBLICATION
from headgate.declaration.keys.key import Key, comes_next
from headgate.declaration.keys.savepoints import SAVEPOINTS
from headgate.declaration.keys.source import SOURCE
from headgate.declaration.keys.tables import GOLD, SILVER

PIPELINE = Key(
    "",
    "section",
    "A pipeline: one file.",
    children=(
        Key("pipeline", "name", "The pipeline's name; its tables live under it.", required=True),
        Key(
            "sources",
            "table",
            "Where records come from. One source today.",
            required=True,
            entry=SOURCE,
        ),
        Key("silver", "table", "Silver tables.", required=True, entry=SILVER),
        Key("gold", "table", "Gold tables.", entry=GOLD),
        Key("publish", "table", "What is written to Kafka.", entry=PUBLICATION),
        Key(
            "jobs",
            "choice",
            "`fused`: one process runs all layers; `per_layer`: one process each. May be changed "
            "at any time.",
            default="fused",
            choices=("fused", "per_layer"),
        ),
        SAVEPOINTS,
        comes_next("functions", "write the expressions out in columns"),
        comes_next("partition_by"),
        comes_next("retain"),
        comes_next("airflow", "give build_dags its arguments in the DAGs file"),
    ),
)
