"""Rows found by a hash of their id, in memory, growing batch by batch.

A small log-structured merge tree: sorted runs, of which eight of a size become one of the next
size, behind flags that most new ids do not find set. So a look-up costs what the batch has ids and
hardly more with what is held; a scan of everything cost ten times as much at 18 million ids.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FAN = 8  # runs of a size that become one
_SPARSE = 4  # flags for each row, at least


@dataclass(frozen=True)
class _Run:
    """``keys`` rise; ``rows`` has a line of values for each."""

    keys: Ints
    rows: Ints

    @property
    def tier(self) -> int:
        return int(math.log(len(self.keys), _FAN))


class IdIndex:
    """Rows of ``width`` integers, each under a key whose lowest bits are as good as random."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._runs: list[_Run] = []
        self._flags = np.zeros(1, np.bool_)

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    def add(self, keys: Ints, rows: Ints) -> None:
        """Hold ``rows`` (shape (n, width)) under ``keys`` (shape (n,))."""
        if not len(keys):
            return
        self._runs.append(_sorted([keys], [rows]))
        self._merge()
        if len(self) * _SPARSE > len(self._flags):
            self._flag_all()
        else:
            self._flags[self._places(keys)] = True

    def find(self, wanted: Ints) -> tuple[Ints, Ints]:
        """Keys and rows of all that is held under ``wanted``, rising and each once."""
        maybe = wanted[self._flags[self._places(wanted)]]
        none = np.empty(0, np.int64), np.empty((0, self._width), np.int64)
        found = [none, *(_look_up(run, maybe) for run in self._runs)]
        return np.concatenate([k for k, _ in found]), np.concatenate([r for _, r in found])

    def values(self, column: int) -> Ints:
        """One column of all rows, in the order that ``keep`` counts them in."""
        return np.concatenate([np.empty(0, np.int64), *(r.rows[:, column] for r in self._runs)])

    def keep(self, kept: Flags) -> None:
        """Forget the rows that are not ``kept``, counted as ``values`` gives them."""
        runs, begin = [], 0
        for run in self._runs:
            here = kept[begin : (begin := begin + len(run.keys))]
            if here.any():
                runs.append(_Run(run.keys[here], run.rows[here]))
        self._runs = runs
        self._flag_all()

    def _merge(self) -> None:
        while True:
            tiers: defaultdict[int, list[_Run]] = defaultdict(list)
            for run in self._runs:
                tiers[run.tier].append(run)
            full = next((runs for runs in tiers.values() if len(runs) >= _FAN), None)
            if full is None:
                return
            merged = {id(run) for run in full}
            self._runs = [run for run in self._runs if id(run) not in merged]
            self._runs.append(_sorted([r.keys for r in full], [r.rows for r in full]))

    def _flag_all(self) -> None:
        # Twice what is needed now, so that this is seldom.
        self._flags = np.zeros(1 << (2 * _SPARSE * len(self)).bit_length(), np.bool_)
        for run in self._runs:
            self._flags[self._places(run.keys)] = True

    def _places(self, keys: Ints) -> Ints:
        return keys & (len(self._flags) - 1)


def _sorted(keys: list[Ints], rows: list[Ints]) -> _Run:
    together = np.concatenate(keys)
    # Stable: it finds the runs that are sorted already and merges them.
    order = np.argsort(together, kind="stable")
    return _Run(together[order], np.concatenate(rows)[order])


def _look_up(run: _Run, wanted: Ints) -> tuple[Ints, Ints]:
    first = np.searchsorted(run.keys, wanted)
    first = first[run.keys[np.minimum(first, len(run.keys) - 1)] == wanted]
    last = np.searchsorted(run.keys, run.keys[first], side="right")
    length = last - first
    # Every number of every [first, last), one after the other.
    before = np.cumsum(length) - length
    places = np.repeat(first - before, length) + np.arange(length.sum())
    return run.keys[places], run.rows[places]
