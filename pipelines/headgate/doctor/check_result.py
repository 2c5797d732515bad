"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckResult:
    """``remedy`` is what to type or change; empty if ``ok``."""

    name: str
    ok: bool
    found: str
    needed: str
    remedy: str = ""


def passed(name: str, found: str, needed: str) -> CheckResult:
    return CheckResult(name, True, found, needed)


def failed(name: str, found: str, needed: str, remedy: str) -> CheckResult:
    return CheckResult(name, False, found, needed, remedy)


def readable(size: int) -> str:
    """``size`` bytes as a person writes it: ``1.5 GiB``."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"
