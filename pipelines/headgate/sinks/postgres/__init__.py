"""The PostgreSQL sink: a table that has the rows of a version of ours, exactly once."""

from __future__ import annotations

from headgate.sinks.postgres.kind import Postgres

MEMBER = Postgres()
