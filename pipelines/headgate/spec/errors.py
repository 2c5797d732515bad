"""Errors a user can act on: what is wrong, where, and the next command to type."""

from __future__ import annotations


class HeadgateError(Exception):
    """``message`` says what is wrong and where, ``remedy`` what to type or change next."""

    exit_code = 1

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}"
