"""The oracle: what every table must hold, said once more in plain Python.

It shares no code with the engine and uses the standard library only: where the two differ, one of
them is wrong. `judge` takes the records as they arrived and the rules of a pipeline, knows of no
batches, restarts or processes, and answers with whole tables; `compare` says how others differ.
"""

from tests.oracle.account import Tables, judge
from tests.oracle.compare import compare
from tests.oracle.parse import read_files
from tests.oracle.rules import (
    Arrival,
    Closing,
    Floor,
    GoldRules,
    Measure,
    Replay,
    RowRule,
    Rules,
    SilverRules,
    SourceRecord,
)

__all__ = [
    "Arrival",
    "Closing",
    "Floor",
    "GoldRules",
    "Measure",
    "Replay",
    "RowRule",
    "Rules",
    "SilverRules",
    "SourceRecord",
    "Tables",
    "compare",
    "judge",
    "read_files",
]
