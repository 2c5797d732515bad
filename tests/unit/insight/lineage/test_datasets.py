"""How sources and sinks are named, without a secret."""

from __future__ import annotations

import pytest

from headgate.flow.publish.sinks.postgres.url import server_of


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("postgresql://headgate:${env:PW}@db/shop", ("postgres://db:5432", "shop")),
        ("postgresql://db:6432/shop?sslmode=require", ("postgres://db:6432", "shop")),
        ("${env:DATABASE_URL}", None),
        ("postgresql://headgate:${env:PW}@${env:HOST}/shop", None),
        ("postgresql://db:${env:PORT}/shop", None),
        ("postgresql://db/${env:DATABASE}", None),
        ("postgresql://db", None),
    ],
)
def test_a_database_has_the_name_that_is_written(
    written: str, place: tuple[str, str] | None
) -> None:
    assert server_of(written) == place
