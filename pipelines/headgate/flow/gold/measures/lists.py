"""Lists of the values of the rows that come first by an order."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.typed import shown
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import Array, DataType, Struct, has_map, parts
from headgate.flow.gold.measures.binding import let

_MOST = 100


class FirstRows(MeasureFunction):
    """The value of the first argument in each of the first rows by an order, as an array in that
    order. The last argument is the greatest number of rows, a constant.

    The state has these rows with their orders and positions. The positions make the order total.
    So the rows that a merge keeps depend neither on the order of merges nor on batches. Spark's
    ``max_by`` and ``min_by`` keep so many rows of each key while they read a batch, and no more.
    """

    takes_nested = True
    constant = f"a whole number from 1 to {_MOST} as n, such as 10"
    name: ClassVar[str]
    function: ClassVar[Literal["max_by", "min_by"]]

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        self._most(arguments)
        if has_map(value := arguments[0].type):
            # Spark sorts no maps, and the values are in the structs that a merge sorts.
            raise Invalid(f"{self.name}() takes no map, and x is {shown(value)}; take a part of it")
        return Array(value)

    @abstractmethod
    def _order(self, measure: Measure) -> Mapping[str, MeasureArgument]:
        """What the rows are ordered by, by the name of its field in the state."""

    @abstractmethod
    def _needed(self, measure: Measure) -> str:
        """The SQL that is null in the rows that are left out."""

    def fold(self, measure: Measure) -> MeasureFold:
        most, order = self._most(measure.arguments), self._order(measure)
        given = measure.arguments[0].type
        value = MeasureArgument(_as_declared(measure.argument(), given), given)
        row = {**order, "value": value}
        type_ = Array(Struct.of({name: each.type for name, each in row.items()}))
        kept = f"{self.function}({_struct(row)}, {_struct(order)}, {most})"
        rises = "true" if self.function == "min_by" else "false"
        both = f"slice(sort_array(concat({{old}}, {{new}}), {rises}), 1, {most})"
        merge = (
            "case when {old} is null then {new} when {new} is null then {old} "
            f"else {both} end"
        )
        partial = f"{kept} filter (where ({self._needed(measure)}) is not null)"
        return MeasureFold(
            {"rows": StateField(type_, partial, merge)}, "coalesce({rows}.value, array())"
        )

    def _most(self, arguments: Sequence[MeasureArgument]) -> int:
        """The greatest number of rows. Raises Invalid if it is not such a constant."""
        text = arguments[-1].text
        if text.isdecimal() and 1 <= (most := int(text)) <= _MOST:
            return most
        raise Invalid(f"{self.name}() takes {self.constant}")


def _as_declared(value: str, type_: DataType, depth: int = 0) -> str:
    """``value`` with the fields of its declared type, and no others: after a rollback, silver's
    structs may have more fields than are declared."""
    each = f"_v{depth}"
    if isinstance(type_, Struct):
        fields = {
            name: MeasureArgument(_as_declared(f"{each}.`{name}`", of, depth + 1), of)
            for name, of in type_.fields
        }
        return let(each, value, f"if({each} is null, null, {_struct(fields)})")
    if isinstance(type_, Array) and any(isinstance(part, Struct) for part in parts(type_)):
        return f"transform({value}, {each} -> {_as_declared(each, type_.element, depth + 1)})"
    return value


def _struct(fields: Mapping[str, MeasureArgument]) -> str:
    named = ", ".join(f"'{name}', {each.text}" for name, each in fields.items())
    return f"named_struct({named})"
