"""Columns of CSV, where all values are texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration import types
from headgate.flow.bronze.decoding.column_type import Plain, Wrong, flags, or_none, patched
from headgate.flow.bronze.decoding.texts import BITS, cell_value, plain_decimal
from headgate.flow.bronze.decoding.values import Misfit, reader

_DOUBLE = r"^(?:[0-9]{1,17}|-[1-9][0-9]{0,16}|-?[0-9]{1,17}\.[0-9]{1,25})(?:[eE][+-]?[0-9]{1,2})?$"
"""Not ``-0``, which JSON takes for a whole number and so for 0."""
_WHOLE = r"^(-?[0-9]{1,15})\.0+$"


class Cell(Plain):
    """Numbers and booleans. Those in a plain form are converted by Arrow, others one by one."""

    def __init__(self, type_: types.DataType, arrow: pa.DataType) -> None:
        super().__init__(str, arrow)
        self._type, self._plain = type_, _plain(type_)
        self._read = reader(type_, named=True)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        plain = pc.match_substring_regex(texts, self._plain)
        if self._type in BITS and not pc.all(plain).as_py():
            # Such as 3.0, which pandas writes for whole numbers of a column that has nulls.
            texts = pc.replace_substring_regex(texts, _WHOLE, r"\1")
            plain = pc.match_substring_regex(texts, self._plain)
        wide = pa.float64() if self._type == types.FLOAT else self.arrow
        found = pc.if_else(plain, texts, None).cast(wide).cast(self.arrow)
        odd = ~flags(pc.fill_null(plain, True))
        if self._type == types.FLOAT:
            odd |= flags(pc.fill_null(pc.is_inf(found), False))
        rows = np.flatnonzero(odd)
        return self._completed(found, rows, values) if len(rows) else (found, None)

    def _completed(
        self, found: pa.Array, rows: Any, values: Sequence[Any]
    ) -> tuple[pa.Array, Wrong]:
        read, wrong = list[object](), np.zeros(len(values), np.bool_)
        for row in rows:
            try:
                read.append(self._read(cell_value(values[row], self._type)))
            except Misfit:
                read.append(None)
                wrong[row] = True
        return patched(found, rows, pa.array(read, self.arrow)), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        if self._type not in BITS and not types.is_decimal(self._type):
            return None
        texts = pa.array(values, pa.string())
        exact = pc.match_substring_regex(texts, self._plain)
        return or_none(~flags(pc.fill_null(exact, True)))


def _plain(type_: types.DataType) -> str:
    if types.is_decimal(type_):
        return f"^{plain_decimal(type_)}$"
    if type_ in BITS:
        return f"^-?[0-9]{{1,{len(str(1 << (BITS[type_] - 1))) - 1}}}$"
    return "^(?:true|false)$" if type_ == types.BOOLEAN else _DOUBLE
