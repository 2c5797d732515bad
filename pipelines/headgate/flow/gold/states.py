"""The states of measures as Spark SQL."""

from __future__ import annotations

import re

from headgate.declaration.contracts.measure import MEASURES, MeasureFold
from headgate.declaration.model import Measure
from headgate.declaration.types import Struct

_PLACE = re.compile(r"\{(old|new)(?:\.(\w+))?\}")


def fold_of(measure: Measure) -> MeasureFold:
    """How ``measure`` is folded."""
    return MEASURES[measure.function].fold(measure)


def merged_sql(measure: Measure, name: str, old: str, new: str) -> str:
    """The SQL that merges field ``name`` of two states addressed by ``old`` and ``new``."""

    def place(match: re.Match[str]) -> str:
        side = old if match[1] == "old" else new
        return f"{side}.`{match[2] or name}`"

    return _PLACE.sub(place, fold_of(measure).fields[name].merge)


def value_sql(measure: Measure, state: str) -> str:
    """The SQL of the measure's value over the state addressed by ``state``."""
    sql = re.sub(r"\{(\w+)\}", lambda m: f"{state}.`{m[1]}`", fold_of(measure).value)
    return f"cast({sql} as {measure.type})"


def state_type(measure: Measure) -> Struct:
    return Struct.of({name: field.type for name, field in fold_of(measure).fields.items()})
