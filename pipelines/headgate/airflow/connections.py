"""Environment variables whose values are in connections of Airflow.

A declaration has ``${env:NAME}``. A DAG file says in which field of which connection the value of
NAME is. The value is read where a process is started that needs it, and is passed on in the
environment of that process: it is in no argument, no DAG and no document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate import exit_codes
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from airflow.sdk import Connection

_PLAIN = ("host", "port", "login", "schema")
_SECRET = ("password", "uri")
_EXTRA = "extra."
_REFERENCE = re.compile(rf"(\S+?)\.({'|'.join((*_PLAIN, *_SECRET))}|{re.escape(_EXTRA)}\S+)")
_FORM = (
    "write CONNECTION.FIELD, such as shop_db.password; the fields are "
    f"{', '.join((*_PLAIN, *_SECRET))} and {_EXTRA}KEY"
)


class NoConnectionError(HeadgateError, code=exit_codes.USAGE):
    """Airflow has no such connection, or it has no such field."""


@dataclass(frozen=True)
class _Reference:
    connection: str
    field: str


def require_connections(connections: Mapping[str, str]) -> None:
    """Raises ValueError if a name is no name of an environment variable, or a value is not
    ``CONNECTION.FIELD``, and TypeError if this is no dictionary."""
    if not isinstance(connections, Mapping):
        raise TypeError("connections is a dictionary from variables to CONNECTION.FIELD")
    for variable, reference in connections.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", str(variable), re.ASCII):
            raise ValueError(
                f"connections: {variable!r} is not the name of an environment variable"
            )
        _reference(variable, reference)


def variables_of(connections: Mapping[str, str]) -> dict[str, str]:
    """The values of ``connections``: environment variables by name, each with the field of a
    connection. Airflow removes them from its logs. Raises NoConnectionError, and ValueError as
    ``require_connections`` does."""
    found: dict[str, Connection] = {}
    values = {}
    for variable, text in connections.items():
        reference = _reference(variable, text)
        if reference.connection not in found:
            found[reference.connection] = _connection(variable, reference.connection)
        values[variable] = _value(variable, reference, found[reference.connection])
    return values


def _reference(variable: str, text: object) -> _Reference:
    match = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"connections: {variable}: {text!r} names no field: {_FORM}")
    return _Reference(match[1], match[2])


def _connection(variable: str, name: str) -> Connection:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException, AirflowSecretsBackendAccessDenied

    try:
        found: Connection = Connection.get(name)
    except (AirflowNotFoundException, AirflowSecretsBackendAccessDenied) as error:
        # A secrets backend that does not answer is no error for Airflow: it asks the next one.
        raise NoConnectionError(
            f"{variable} is not set: Airflow has no connection {name}, or its secrets backend does "
            "not give it to this task",
            f"create it in Airflow (Admin, Connections), as AIRFLOW_CONN_{name.upper()} in the "
            "environment of the workers, or in the secrets backend; or correct `connections` in "
            "the DAG file",
        ) from error
    return found


def _value(variable: str, reference: _Reference, connection: Connection) -> str:
    from airflow.sdk.log import mask_secret

    found = _field(reference.field, connection)
    if found is None or found == "" or isinstance(found, (dict, list)):
        has = "no text" if isinstance(found, (dict, list)) else "nothing"
        raise NoConnectionError(
            f"{variable} is not set: Airflow's connection {reference.connection} has {has} in its "
            f"field {reference.field}",
            "fill in the field in Airflow (Admin, Connections), or correct `connections` in the "
            "DAG file",
        )
    value = str(found).lower() if isinstance(found, bool) else str(found)
    if reference.field not in _PLAIN:
        mask_secret(value)
    return value


def _field(name: str, connection: Connection) -> Any:
    if name.startswith(_EXTRA):
        extra: Any = connection.extra_dejson
        key = name.removeprefix(_EXTRA)
        return extra.get(key) if isinstance(extra, dict) else None
    return connection.get_uri() if name == "uri" else getattr(connection, name)
