"""Errors of the local Airflow."""

from __future__ import annotations

from headgate import exit_codes
from headgate.errors import HeadgateError


class StandaloneError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """Airflow did not start or end."""


class NoAirflowError(HeadgateError, code=exit_codes.MACHINE):
    """The environment has no Airflow."""


class RunsAlreadyError(HeadgateError):
    """An Airflow runs in this home."""


class AskedWrongError(HeadgateError, code=exit_codes.USAGE):
    """A folder, a port or a database that cannot be used."""
