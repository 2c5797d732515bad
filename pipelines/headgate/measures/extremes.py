"""The least or greatest value, and the value of the first or last row by event time."""

from __future__ import annotations

from headgate.declaration.measures import Fold, MeasureKind, StateField
from headgate.declaration.model import Measure
from headgate.declaration.types import BIGINT, INT, TIMESTAMP, DataType, Struct

_POSITION: dict[str, DataType] = {"at": TIMESTAMP, "partition": INT, "offset": BIGINT}


class Extreme(MeasureKind):
    """``function`` is the aggregate over rows, ``merge`` the function of two values."""

    result = "the argument's type"
    keeps = "one value"

    def __init__(self, function: str, merge: str) -> None:
        self._function, self._merge = function, merge

    def type_of(self, argument: DataType) -> DataType:
        return argument

    def fold(self, measure: Measure) -> Fold:
        partial = f"{self._function}({measure.argument})"
        field = StateField(measure.type, partial, f"{self._merge}({{old}}, {{new}})")
        return Fold({"value": field}, "{value}")


class Edge(Extreme):
    """The value of the row that is first or last by event time. The position in the source breaks
    ties. Rows whose argument is null are left out."""

    keeps = "one value and its position"

    def fold(self, measure: Measure) -> Fold:
        type_ = Struct.of({**_POSITION, "value": measure.type})
        argument = f"({measure.argument})"
        row = (
            "named_struct('at', _event_time, 'partition', _partition, 'offset', _offset, "
            f"'value', {argument})"
        )
        partial = f"{self._function}({row}) filter (where {argument} is not null)"
        field = StateField(type_, partial, f"{self._merge}({{old}}, {{new}})")
        return Fold({"row": field}, "{row}.value")
