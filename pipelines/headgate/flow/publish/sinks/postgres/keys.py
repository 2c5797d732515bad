"""The keys of the section ``postgres`` of a publication."""

from __future__ import annotations

from headgate.declaration.keys.key import Key

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
