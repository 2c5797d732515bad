"""The section ``postgres`` of a publication: its keys, and the settings that they declare."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.declaration.keys.key import Key


@dataclass(frozen=True)
class PostgresSink:
    """``url`` is resolved and may contain a password: it is not in the repr. ``written`` is the url
    as the declaration writes it. ``keys`` are the columns of a unique index; if empty, there is no
    index."""

    url: str = field(repr=False)
    written: str
    schema: str
    table: str
    keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The table, for a person."""
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """The table in statements, also if its name has upper-case letters or is a word of SQL."""
        return f'"{self.schema}"."{self.table}"'


POSTGRES = Key(
    "postgres",
    "section",
    "The target table in PostgreSQL. It always equals one committed version of the Headgate table.",
    children=(
        Key(
            "url",
            "text",
            "`postgresql://USER@HOST:PORT/DATABASE`. A password must be a placeholder, such as "
            "`postgresql://ann:${env:PASSWORD}@db/shop`.",
            required=True,
            deployment=True,
        ),
        Key(
            "table",
            "text",
            "`TABLE` or `SCHEMA.TABLE`; the schema is `public` if none is given. Both are "
            "created unless they exist.",
            required=True,
            deployment=True,
        ),
        Key(
            "keys",
            "names",
            "Columns of a unique index that the table gets. They include the columns that tell "
            "rows apart: the start of the window and `by`.",
        ),
    ),
)
