"""The oracle: an independent definition in plain Python of what every table must hold.

It shares no code with the engine and uses only the standard library. If the two differ, one of them
is wrong. `derive` takes the records in the order of arrival and the rules of a pipeline, and
returns whole tables; it does not depend on batches, restarts or processes. `compare` returns how
other tables differ.
"""

from tests.oracle.account import Tables, derive
from tests.oracle.compare import compare
from tests.oracle.parse import read_files
from tests.oracle.rules import (
    Arrival,
    Closing,
    Explode,
    Floor,
    GoldRules,
    Measure,
    OtherDecision,
    Replay,
    RowRule,
    Rules,
    SilverRules,
    SourceRecord,
)

__all__ = [
    "Arrival",
    "Closing",
    "Explode",
    "Floor",
    "GoldRules",
    "Measure",
    "OtherDecision",
    "Replay",
    "RowRule",
    "Rules",
    "SilverRules",
    "SourceRecord",
    "Tables",
    "compare",
    "derive",
    "read_files",
]
