"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass

from headgate import exit_codes


@dataclass(frozen=True)
class CheckResult:
    """``remedy`` is what to type or change; empty if ``ok``. ``code`` is the exit code of a start
    that fails because of this."""

    name: str
    ok: bool
    found: str
    needed: str
    remedy: str = ""
    code: int = exit_codes.MACHINE


def passed(name: str, found: str, needed: str) -> CheckResult:
    return CheckResult(name, True, found, needed)


def failed(
    name: str, found: str, needed: str, remedy: str, code: int = exit_codes.MACHINE
) -> CheckResult:
    return CheckResult(name, False, found, needed, remedy, code)
