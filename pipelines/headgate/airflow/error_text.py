"""The text of an error, for logs and pages of Airflow."""

from __future__ import annotations

from headgate.commands import Place
from headgate.errors import HeadgateError


def error_text(error: Exception, place: Place) -> str:
    """With commands as they are typed at ``place``. One process of Airflow works for many
    pipelines, so it has no place of its own."""
    return error.text(place) if isinstance(error, HeadgateError) else str(error)
