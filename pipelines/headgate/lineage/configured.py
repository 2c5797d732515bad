"""Whether, and where, lineage is sent: the standard variables of OpenLineage say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

NAMESPACE = "OPENLINEAGE_NAMESPACE"
"""Of jobs; ``headgate`` if left out."""
_SAY_WHERE = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


class LineageError(HeadgateError, code=exit_codes.MACHINE):
    """Lineage is configured, and cannot be sent."""


def is_configured(environment: Mapping[str, str]) -> bool:
    if environment.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1"):
        return False
    return any(name.startswith(_SAY_WHERE) and value for name, value in environment.items())


def namespace(environment: Mapping[str, str]) -> str:
    return environment.get(NAMESPACE) or "headgate"


def client() -> OpenLineageClient:
    """As the variables say. Raises LineageError."""
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise LineageError(
            "lineage is configured (OPENLINEAGE_…), and its client is not installed",
            remedy='install it: pip install "headgate[lineage]"',
        ) from error
    try:
        return OpenLineageClient()
    except Exception as error:  # whatever a transport says of its settings
        raise LineageError(
            f"lineage cannot be sent as OPENLINEAGE_… says: {error}",
            remedy="correct the variables, or set OPENLINEAGE_DISABLED=true",
        ) from error
