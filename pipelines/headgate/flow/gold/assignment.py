"""The assignment of silver rows to the results of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Assignment:
    """``assign`` returns each row once for each result that it belongs to, with the columns of the
    result. The results of a row depend only on the row.

    ``end``, ``late_from`` and ``closed_by`` are times in microseconds since 1970 UTC. ``end`` is an
    expression over the columns of a result: the result is final once the watermark minus the
    allowed lateness reaches it. The others are expressions over a pair. A pair is late if the row's
    watermark at arrival is at or after ``late_from``. It is closed if a drain has made results up
    to ``closed_by`` final. No pair may be folded into a final result: ``late_from`` is at most
    ``end`` plus the allowed lateness. ``late_from`` is later than the row's event time by more than
    ``slack`` microseconds.
    """

    assign: Callable[[DataFrame], DataFrame]
    end: Column
    late_from: Column
    closed_by: Column
    slack: int = 0
