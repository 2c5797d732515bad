"""The least or greatest value, and the value of the first or last row by event time."""

from __future__ import annotations

from headgate.declaration.measures import Fold, MeasureKind, StateField
from headgate.declaration.model import Measure
from headgate.declaration.types import BIGINT, DOUBLE, FLOAT, INT, TIMESTAMP, DataType, Struct
from headgate.measures.adding import cast

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
        type_ = measure.type
        partial = f"{self._function}({_one_zero(str(measure.argument), type_)})"
        merge = _one_zero(f"{self._merge}({{old}}, {{new}})", type_)
        # States of older versions have -0.0, too.
        return Fold({"value": StateField(type_, partial, merge)}, _one_zero("{value}", type_))


def _one_zero(value: str, type_: DataType) -> str:
    """``value``, where -0.0 is 0.0: the two are equal, so the order of rows would decide between
    them."""
    return cast(f"({value}) + 0D", type_) if type_ in (FLOAT, DOUBLE) else value


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
