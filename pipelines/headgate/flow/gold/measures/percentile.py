"""``percentile(x, p)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.errors import Invalid
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.types import BIGINT, BOOLEAN, DOUBLE, DataType, Map, Struct
from headgate.flow.gold.measures.adding import require_number
from headgate.flow.gold.measures.binding import let

_MOST = 2000
"""A window keeps at most so many distinct values as they are."""
_SPLIT = f"{2**46 + 1}D"
_LARGE = "1e290D"
_COUNTS = Map(DOUBLE, BIGINT)
_STATE = Struct.of({"rounded": BOOLEAN, "counts": _COUNTS})


class Percentile(MeasureFunction):
    """The state is how often each value occurs. Once there are more than ``_MOST`` distinct values,
    each is rounded to 7 binary digits, by at most 1/128 of itself; beyond ±1e290, to infinity.

    A union has at least as many distinct values as each of its parts, and rounding twice is as
    rounding once. So the state depends on the values alone, not on the order of merges.
    """

    result = "double; between two values, interpolated as in Spark"
    keeps = (
        f"how often each value occurs; with more than {_MOST:,} distinct values, each value is "
        "rounded by at most 0.8 %"
    )
    takes: ClassVar[tuple[str, ...]] = ("x", "p")
    also_called: ClassVar[tuple[str, ...]] = (
        "percentile_approx",
        "approx_percentile",
        "percentile_cont",
        "quantile",
    )
    constant: ClassVar[str] = "a number from 0 to 1 as p, such as 0.95"
    name: ClassVar[str] = "percentile"

    def type_of(self, arguments: Sequence[MeasureArgument]) -> DataType:
        require_number(self.name, arguments[0].type)
        self.share(arguments)
        return DOUBLE

    def share(self, arguments: Sequence[MeasureArgument]) -> float:
        """The share of values that are less. Raises Invalid if it is not from 0 to 1."""
        with suppress(ValueError):
            if 0 <= (share := float(arguments[1].text)) <= 1:
                return share
        raise Invalid(f"{self.name}() takes {self.constant}")

    def fold(self, measure: Measure) -> MeasureFold:
        # The sum of -0.0 and 0.0 is 0.0.
        rows = f"sort_array(collect_list(cast(({measure.argument()}) as double) + 0D))"
        counts = let("_v", rows, _counted("_v", str, lambda begin, end: f"{end} - {begin}"))
        nothing = f"cast(map() as {_COUNTS})"
        old, new = (f"coalesce({{{side}}}.counts, {nothing})" for side in ("old", "new"))
        union = f"map_zip_with({old}, {new}, (_k, _a, _b) -> coalesce(_a, 0) + coalesce(_b, 0))"
        is_rounded = "coalesce({old}.rounded, false) or coalesce({new}.rounded, false)"
        field = StateField(_STATE, _bounded("false", counts), _bounded(is_rounded, union))
        return MeasureFold(
            {"values": field}, _percentile("{values}.counts", self.share(measure.arguments))
        )


def _bounded(is_rounded: str, counts: str) -> str:
    """A state. Its values are rounded if they are already, or if there are too many."""
    entries = "sort_array(map_entries(_m))"
    rounded = let("_e", entries, _counted("_e", lambda each: _rounded(f"{each}.key"), _added))
    rounds = f"{is_rounded} or size(_m) > {_MOST}"
    state = (
        f"if({rounds}, named_struct('rounded', true, 'counts', {rounded}), "
        "named_struct('rounded', false, 'counts', _m))"
    )
    return let("_m", counts, state)


def _counted(values: str, key: Callable[[str], str], count: Callable[[str, str], str]) -> str:
    """A map from each key of a sorted array to how often it occurs: ``count`` of the begin and the
    end of its places."""
    is_other = f"{key(f'{values}[_i]')} <> {key(f'{values}[_i - 1]')}"
    begins = f"filter(transform({values}, (_x, _i) -> _i), _i -> _i = 0 or {is_other})"
    keys = f"transform(_s, _i -> {key(f'{values}[_i]')})"
    end = f"coalesce(get(_s, _j + 1), size({values}))"
    counts = f"transform(_s, (_i, _j) -> cast({count('_i', end)} as bigint))"
    return let("_s", begins, f"map_from_arrays({keys}, {counts})")


def _added(begin: str, end: str) -> str:
    return f"aggregate(slice(_e, {begin} + 1, {end} - {begin}), 0L, (_n, _x) -> _n + _x.value)"


def _rounded(value: str) -> str:
    """A value with 7 of its 53 binary digits (T. J. Dekker, "A Floating-Point Technique for
    Extending the Available Precision", 1971)."""
    product = f"{value} * {_SPLIT}"
    return f"if(abs({value}) < {_LARGE}, {product} - ({product} - {value}), {value} * {_LARGE})"


def _percentile(counts: str, share: float) -> str:
    """The formula of Spark's own percentile(). Null without values."""
    total = f"aggregate(map_values({counts}), 0L, (_n, _c) -> _n + _c)"
    step = "if(_a.left < 0, _a, named_struct('left', _a.left - _x.value, 'key', _x.key))"
    begin = "named_struct('left', _k, 'key', cast(null as double))"
    key = f"aggregate(_e, {begin}, (_a, _x) -> {step}).key"
    both = f"transform(array(floor(_p), ceil(_p)), _k -> {key})"
    between = "(ceil(_p) - _p) * _q[0] + (_p - floor(_p)) * _q[1]"
    value = let("_q", both, f"if(_q[0] = _q[1], _q[0], {between})")
    value = let("_e", f"sort_array(map_entries({counts}))", value)
    return let("_p", f"({total} - 1) * {share!r}D", value)


MEMBER = Percentile()
