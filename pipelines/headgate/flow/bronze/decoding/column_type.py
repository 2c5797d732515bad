"""What a column of decoded values is, and the columns whose values the decoder checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.bronze.decoding.times import Flags

Wrong = Flags | None
"""Which values do not have the declared type; None if all have it."""


class ColumnType(ABC):
    """``json`` is the type that the decoder produces, ``arrow`` is the type in bronze."""

    json: Any
    arrow: pa.DataType

    @abstractmethod
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        """The decoded values as an array, null if a value is wrong; and which values are wrong."""

    def inexact(self, values: Sequence[Any]) -> Wrong:
        """Which decoded values may have more digits than the array keeps. None for none."""
        return None


class Plain(ColumnType):
    """Values that the decoder has checked."""

    def __init__(self, json: Any, arrow: pa.DataType) -> None:
        self.json, self.arrow = json | None, arrow

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        return pa.array(values, self.arrow), None


def raw_texts(values: Sequence[Any]) -> pa.Array:
    """The JSON texts of values that are not decoded; null for null."""
    given = [None if value is None else bytes(value) for value in values]
    texts = pa.array(given, pa.binary()).cast(pa.string())
    return pc.if_else(pc.equal(texts, "null"), None, texts)


def or_none(wrong: Flags) -> Wrong:
    return wrong if wrong.any() else None


def flags(array: pa.Array) -> Flags:
    """Booleans without nulls as a NumPy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def patched(array: pa.Array, rows: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """``array`` with other values at some rows."""
    taken = np.arange(len(array))
    taken[rows] = len(array) + np.arange(len(values))
    return pa.concat_arrays([array, values]).take(pa.array(taken))
