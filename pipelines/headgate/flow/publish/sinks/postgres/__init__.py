"""The PostgreSQL sink: a table that always equals one committed version of Headgate's table."""

from __future__ import annotations

from headgate.flow.publish.sinks.postgres.kind import Postgres

MEMBER = Postgres()
