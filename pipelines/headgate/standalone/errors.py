"""What keeps an Airflow of one's own from running."""

from __future__ import annotations

from typing import ClassVar

from headgate.errors import HeadgateError


class StandaloneError(HeadgateError):
    exit_code: ClassVar[int] = 7


class NoAirflowError(HeadgateError):
    """The environment has no Airflow."""

    exit_code: ClassVar[int] = 8


class RunsAlreadyError(HeadgateError):
    exit_code: ClassVar[int] = 1


class AskedWrongError(HeadgateError):
    """A folder, a port or a database that cannot be used."""

    exit_code: ClassVar[int] = 2
