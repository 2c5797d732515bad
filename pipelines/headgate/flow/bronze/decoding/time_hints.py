"""What a value that is not a time of the declared form probably is, and the key to change."""

from __future__ import annotations

from dataclasses import replace

from headgate.declaration.time_forms import TimeForm
from headgate.flow.bronze.decoding.event_times import EPOCHS, is_epoch
from headgate.flow.bronze.decoding.values import instant_reader

_FIRST, _LAST = 631_152_000_000_000, 4_102_444_800_000_000  # the years 1990 to 2099


def time_hint(value: object, times: TimeForm) -> str:
    """A hint for the detail of a record; empty if nothing is known."""
    if _is_time(value, times):
        return ""
    if times.zone and _is_time(value, replace(times, ambiguous="earlier")):
        return f"the clocks of {times.zone} show this time twice"
    if is_epoch(times) or times.format == "iso":
        for epoch in EPOCHS:
            if epoch != times.format and _is_time(value, TimeForm(epoch), recent=True):
                return f"it looks like {epoch}: see the key format"
    if times.format == "iso" and _is_time(value, replace(times, zone="UTC")):
        return "it has no offset: add the key zone beside its format, such as zone: UTC"
    return ""


def _is_time(value: object, times: TimeForm, *, recent: bool = False) -> bool:
    try:
        time = instant_reader(times)(value)
    except (ValueError, ArithmeticError):
        return False
    return time is not None and (not recent or _FIRST <= time.micros < _LAST)
