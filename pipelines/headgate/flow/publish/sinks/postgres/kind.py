"""The sink that keeps a table in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from headgate import exit_codes
from headgate.commands import install_extra
from headgate.declaration.contracts.sink import Sink
from headgate.declaration.errors import Invalid
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.errors import HeadgateError
from headgate.flow.publish.sinks.postgres.declared import POSTGRES, PostgresSink
from headgate.flow.publish.sinks.postgres.url import check_url, secrets_in_url, server_of
from headgate.flow.publish.sinks.writers import Mirror, SinkContext

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
DEFAULT_SCHEMA = "public"


class NoPackageError(HeadgateError, code=exit_codes.MACHINE):
    """A package is missing that the sink needs."""


class Postgres(Sink[PostgresSink]):
    key = POSTGRES
    place = "table"
    accepts = "the database takes them"
    check_hint = "see whether the database answers and the user may write to the table"

    def build(self, section: Section, report: ProblemReport) -> PostgresSink | None:
        url, table = section.get("url"), section.get("table")
        if url is None or table is None:
            return None
        keys = section.get("keys")
        try:
            if not url.is_missing:
                check_url(url.text, url.written)
        except Invalid as error:
            report.invalid(url, error)
            return None
        names = ("", table.text) if table.is_missing else _names(table)
        if names is None:
            wrong = f"{table.shown!r} is not TABLE or SCHEMA.TABLE, in letters, digits and _"
            report.at(table, wrong)
            return None
        by = tuple(field.text for field in keys.items) if keys else ()
        return PostgresSink(url.text, url.written or url.text, *names, by)

    def plan(self, sink: PostgresSink) -> dict[str, Any]:
        return {"url": sink.written, "table": sink.name, "keys": list(sink.keys)}

    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        where = f"  postgres {planned['table']} at {planned['url']}"
        return (where, *([f"  keys     {', '.join(planned['keys'])}"] if planned["keys"] else []))

    def secrets(self, sink: PostgresSink) -> Iterable[str]:
        return secrets_in_url(sink.url, sink.written if sink.written != sink.url else None)

    def datasets(self, sink: PostgresSink) -> Iterable[tuple[str, str]]:
        found = server_of(sink.written)
        return ((found[0], f"{found[1]}.{sink.name}"),) if found else ()

    def writer(self, sink: PostgresSink, context: SinkContext) -> Mirror:
        _require_package()
        from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror

        return PostgresMirror(sink, context)

    def reset(self, sink: PostgresSink, context: SinkContext) -> str | None:
        _require_package()
        from headgate.flow.publish.sinks.postgres.mirror import reset_publication

        return reset_publication(sink, context)


def _require_package() -> None:
    """Raises NoPackageError."""
    if find_spec("psycopg2") is None:
        raise NoPackageError(
            "a publication to PostgreSQL needs the package psycopg2",
            remedy=f"install it: {install_extra('postgres')}",
        )


def _names(table: Field) -> tuple[str, str] | None:
    """Schema and table."""
    schema, dot, name = table.text.rpartition(".")
    parts = (schema if dot else DEFAULT_SCHEMA, name)
    return parts if all(_NAME.fullmatch(part) for part in parts) else None
