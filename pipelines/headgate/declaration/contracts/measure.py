"""The contract of measures, and their registry.

The rows of a batch become a partial state, two states are merged into one, and a value is computed
from a state. A merge is commutative and associative, and a missing state is its neutral element. So
a window's value depends neither on the order of its rows nor on how they were divided into batches.

A member is a module of ``headgate.flow.gold.measures`` (``headgate.registry``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import DataType
from headgate.registry import Registry


@dataclass(frozen=True)
class StateField:
    """One field of a measure's state. ``partial`` is the Spark SQL aggregate that computes it from
    rows, over ``Measure.argument``. ``merge`` is the Spark SQL expression that merges the fields of
    two states: ``{old}`` and ``{new}`` stand for this field in each state, ``{old.name}`` for
    another field."""

    type: DataType
    partial: str
    merge: str


@dataclass(frozen=True)
class MeasureFold:
    """The state's fields by name, and the expression that computes the value from them; ``{name}``
    stands for a field."""

    fields: Mapping[str, StateField]
    value: str


class MeasureFunction(ABC):
    """A measure that declarations can name.

    ``result`` says in words which type its value has, ``keeps`` what an open window keeps for it.
    ``synonyms`` are other names that Spark has for it. ``also_called`` are names of similar
    aggregates, for which errors propose it. ``takes`` are the names of its arguments. If the last
    one is a constant, ``constant`` says which ones are allowed, for errors. ``takes_rows`` allows
    ``name(*)``, ``takes_nested`` arguments with parts. ``distinct`` is the measure that
    ``name(distinct x)`` stands for. ``adds_up``: the values of all results add up to the value over
    all their pairs.
    """

    result: ClassVar[str]
    keeps: ClassVar[str]
    synonyms: ClassVar[tuple[str, ...]] = ()
    also_called: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[tuple[str, ...]] = ("x",)
    constant: ClassVar[str] = ""
    takes_rows: ClassVar[bool] = False
    takes_nested: ClassVar[bool] = False
    distinct: ClassVar[str | None] = None
    adds_up: ClassVar[bool] = False

    @abstractmethod
    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        """The type of the value over some arguments: as many as ``takes``, none for ``name(*)``.
        Raises Invalid if the measure does not take such arguments."""

    @abstractmethod
    def fold(self, measure: Measure) -> MeasureFold:
        """How a measure of this kind is folded."""


MEASURES: Registry[MeasureFunction] = Registry("headgate.flow.gold.measures", MeasureFunction)


def measure_name(name: str) -> str | None:
    """The name of the measure that has ``name`` as its name or as a synonym."""
    if MEASURES.get(name) is not None:
        return name
    return next((each for each in MEASURES.names() if name in MEASURES[each].synonyms), None)
