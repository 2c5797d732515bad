"""The least or greatest value, and the value of the first or last row by an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.names import IDENTITY
from headgate.declaration.types import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    DataType,
    Struct,
)
from headgate.flow.gold.measures.adding import cast, require_condition

POSITION = {
    "at": MeasureArgument("_event_time", TIMESTAMP),
    **{name: MeasureArgument(f"_{name}", type_) for name, type_ in IDENTITY.items()},
}
"""What orders all rows of a silver table: the event time, then the identity."""


class Extreme(MeasureFunction):
    """``function`` is the aggregate over rows, ``merge`` the function of two values."""

    result = "the argument's type"
    keeps = "one value"

    def __init__(self, function: str, merge: str) -> None:
        self._function, self._merge = function, merge

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        return arguments[0].type

    def fold(self, measure: Measure) -> MeasureFold:
        type_ = measure.type
        partial = f"{self._function}({_one_zero(measure.argument(), type_)})"
        merge = _one_zero(f"{self._merge}({{old}}, {{new}})", type_)
        return MeasureFold({"value": StateField(type_, partial, merge)}, "{value}")


class Logical(Extreme):
    """An extreme of a condition. False is less than true."""

    takes = ("condition",)
    name: ClassVar[str]

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_condition(self.name, arguments[0].type)
        return BOOLEAN


def _one_zero(value: str, type_: DataType) -> str:
    """``value``, where -0.0 is 0.0: the two are equal, so the order of rows would decide between
    them."""
    return cast(f"({value}) + 0D", type_) if type_ in (FLOAT, DOUBLE) else value


class Edge(Extreme):
    """The value of the first or last row by event time. The position in the source breaks ties.
    Rows whose argument is null are left out."""

    keeps = "one value and its position"

    def fold(self, measure: Measure) -> MeasureFold:
        return self._row(measure, dict(POSITION))

    def _row(self, measure: Measure, row: dict[str, MeasureArgument]) -> MeasureFold:
        """The value of the row that is first or last by ``row``, of those whose last argument is
        not null."""
        row["value"] = MeasureArgument(measure.argument(), measure.type)
        named = ", ".join(f"'{name}', {each.text}" for name, each in row.items())
        is_meant = f"({measure.argument(-1)}) is not null"
        partial = f"{self._function}(named_struct({named})) filter (where {is_meant})"
        type_ = Struct.of({name: each.type for name, each in row.items()})
        field = StateField(type_, partial, f"{self._merge}({{old}}, {{new}})")
        return MeasureFold({"row": field}, "{row}.value")


class ValueAt(Edge):
    """The value of the row with the least or greatest order. Of rows with equal orders, it is the
    first or last one, as in ``Edge``. Rows whose order is null are left out."""

    keeps = "one value, its order and its position"
    takes = ("x", "order")

    def fold(self, measure: Measure) -> MeasureFold:
        order = MeasureArgument(measure.argument(1), measure.arguments[1].type)
        return self._row(measure, {"order": order, **POSITION})
