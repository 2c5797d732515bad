"""How silver rows pair with the results of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Assignment:
    """``assign`` gives each row once for each result that it belongs to, with the columns of the
    result. What a row belongs to is a function of the row alone.

    The columns are times in microseconds since 1970 UTC. ``end`` is an expression over the columns
    of a result: it is final once the watermark, less the allowed lateness, is there. The others are
    expressions over a pair: it is late if the row's clock is at ``late_from`` or later, and closed
    if an operation has closed results through ``closed_by``. No pair may be folded into a result
    that is final: ``late_from`` is never after ``end`` and the allowed lateness.
    """

    assign: Callable[[DataFrame], DataFrame]
    end: Column
    late_from: Column
    closed_by: Column
