"""Columns of dates and of timestamps of any form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.time_forms import TimeForm
from headgate.flow.bronze.decoding.column_type import (
    ColumnType,
    Plain,
    Wrong,
    flags,
    or_none,
    raw_texts,
)
from headgate.flow.bronze.decoding.event_times import ISO, epoch_micros, text_micros, text_reader

INSTANT = pa.timestamp("us", "UTC")


class Time(Plain):
    """Timestamps that are texts."""

    def __init__(self, times: TimeForm) -> None:
        super().__init__(str, INSTANT)
        self._times = times
        self._read = text_reader(times)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(texts, self._times)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return pa.array(micros, mask=~valid).cast(self.arrow), or_none(wrong)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        if self._times.format != "iso":
            if _MANY_DIGITS not in self._times.format:
                return None
            times = (None if value is None else self._read(value) for value in values)
            return or_none(np.array([bool(time and time.more) for time in times], np.bool_))
        more = pc.match_substring_regex(pa.array(values, pa.string()), _MORE)
        return or_none(flags(pc.fill_null(more, False)))


class Epoch(ColumnType):
    """Timestamps that are numbers, or numbers in quotes. In CSV, all cells are texts."""

    arrow = INSTANT

    def __init__(self, times: TimeForm, *, is_csv: bool) -> None:
        self.json = str | None if is_csv else msgspec.Raw
        self._times, self._is_csv = times, is_csv
        self._read = text_reader(times)

    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = self._texts(values)
        plain = flags(pc.fill_null(pc.match_substring_regex(texts, _WHOLE), False))
        numbers = pc.if_else(pa.array(plain), texts, "0").cast(pa.int64()).to_numpy()
        micros, valid = epoch_micros(numbers, self._times)
        micros, valid = micros.copy(), valid & plain
        given = flags(pc.is_valid(texts))
        for row in np.flatnonzero(given & ~plain):
            if (time := self._read(texts[row].as_py())) is not None:
                micros[row], valid[row] = time.micros, True
        return pa.array(micros, mask=~valid).cast(self.arrow), or_none(given & ~valid)

    def inexact(self, values: Sequence[Any]) -> Wrong:
        texts = self._texts(values)
        pattern = _WHOLE_MICROS if self._times.format == "epoch_nanos" else _WHOLE
        exact = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
        return or_none(~flags(exact))

    def _texts(self, values: Sequence[Any]) -> pa.Array:
        """The numbers as they are written. Other values keep their quotes, so they are wrong."""
        if self._is_csv:
            return pa.array(values, pa.string())
        texts = raw_texts(values)
        return pc.replace_substring_regex(texts, '^"([^"]*)"$', r"\1")


_MORE = r"[.,][0-9]{6}[0-9]*[1-9]"
_MANY_DIGITS = "S" * 7
_WHOLE = "^-?[0-9]{1,18}$"
_WHOLE_MICROS = "^-?[0-9]{0,15}000$"


class Date(Plain):
    def array(self, values: Sequence[Any]) -> tuple[pa.Array, Wrong]:
        texts = pa.array(values, pa.string())
        micros, valid = text_micros(pc.binary_join_element_wise(texts, _MIDNIGHT, ""), ISO)
        days = pa.array((micros // 86_400_000_000).astype(np.int32), mask=~valid)
        wrong = flags(pc.is_valid(texts)) & ~valid
        return days.cast(self.arrow), or_none(wrong)


_MIDNIGHT = "T00:00:00Z"
