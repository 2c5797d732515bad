"""Whether, and where, lineage is sent, according to the standard variables of OpenLineage."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.commands import install_extra
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

NAMESPACE = "OPENLINEAGE_NAMESPACE"
"""The variable with the namespace of jobs; ``headgate`` if it is not set."""
_REMEDY = "correct the variables, or set OPENLINEAGE_DISABLED=true"
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
    """The client that the variables configure. Raises LineageError, which quotes no value of a
    variable, because it may have a password."""
    try:
        from openlineage.client import OpenLineageClient
    except ImportError as error:
        raise LineageError(
            "lineage is configured (OPENLINEAGE_…), and its client is not installed",
            remedy=f"install it: {install_extra('lineage')}",
        ) from error
    require_json(os.environ)
    try:
        return OpenLineageClient()
    except Exception as error:  # a transport may raise any error
        kind = type(error).__name__
        raise LineageError(
            f"lineage cannot be sent: the client rejects the OPENLINEAGE_… variables ({kind})",
            remedy=_REMEDY,
        ) from error


def require_json(environment: Mapping[str, str]) -> None:
    """Raises LineageError if a setting looks like JSON and is not valid JSON: the client would
    write it into a log."""
    for name, value in environment.items():
        if name.startswith("OPENLINEAGE__") and any(c in value for c in "{}[]"):
            try:
                json.loads(value)
            except json.JSONDecodeError as error:
                wrong = f"{error.msg} at character {error.pos + 1}"
                raise LineageError(f"{name} is not JSON: {wrong}", remedy=_REMEDY) from None
