"""The declared settings of a table in PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass, field


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
