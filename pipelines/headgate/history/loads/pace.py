"""Decides when a load may take its next step, from times alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """The last step of a load: its times in seconds, and how many records it has read."""

    began: float
    ended: float
    rows: int


def may_begin(
    now: float, last: Step | None, *, share: float, rate: int | None, has_input: bool
) -> bool:
    """Whether the next step may begin. ``has_input`` means that the stream has input, or had some a
    moment ago. Then a load takes at most the ``share`` of the time, and the stream has the rest."""
    if last is None:
        return True
    if rate is not None and now - last.began < last.rows / rate:
        return False
    took = last.ended - last.began
    return not has_input or now - last.ended >= took * (1 / share - 1)
