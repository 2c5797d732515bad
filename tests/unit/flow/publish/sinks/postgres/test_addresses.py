"""Addresses, passwords, and the package that the sink needs."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing

import psycopg2
import pytest

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.errors import DeclarationError
from headgate.flow.publish.sinks.postgres import connecting
from headgate.flow.publish.sinks.postgres.kind import NoPackageError
from headgate.flow.publish.sinks.postgres.mirror import PostgresMirror
from tests.support.postgres import PASSWORD, Server, is_there
from tests.support.sinks import declared
from tests.unit.flow.publish.sinks.postgres.conftest import CONTEXT, sink_of

pytestmark = pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")


def test_a_wrong_password_is_not_told(server: Server) -> None:
    sink = sink_of(server, url=server.url.replace(PASSWORD, "wrong-secret"))
    with closing(PostgresMirror(sink, CONTEXT)) as found:
        with pytest.raises(psycopg2.Error) as refused:
            found.held()
        said = found.failure(refused.value) or ""
    assert "password authentication failed" in said
    assert "wrong-secret" not in said
    assert "wrong-secret" not in repr(sink)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://ann:hunter22@db/shop", "has a password; write"),
        ("postgresql://db/shop?password=hunter22", "has a password; write"),
        ("postgresql://db/shop?pass%77ord=hunter22", "has a password; write"),
        ("mysql://db/shop", "is not an address such as"),
        ("postgresql://db:port/shop", "is not an address such as"),
    ],
)
def test_addresses(url: str, problem: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(f"postgres: {{url: '{url}', table: a}}")
    assert problem in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize(
    "password", ["p@ss-hunter22", "p@hunter22/x", "1/hunter22", "1?hunter22", "1#hunter22"]
)
def test_a_password_that_must_be_encoded(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    """Error messages would show a part of the password as the name of the server or the
    database."""
    monkeypatch.setenv("PG", password)
    with pytest.raises(DeclarationError) as refused:
        declared("postgres: {url: 'postgresql://ann:${env:PG}@db/shop', table: a}")
    assert "encode @ in the user or the password as %40" in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("password", ["hunter22&b", "hunter22&b=c", "hunter22%zz", "hunter22#b"])
def test_a_password_in_the_query_that_must_be_encoded(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """Error messages would show a part of it as the name of a parameter."""
    monkeypatch.setenv("PG", password)
    with pytest.raises(DeclarationError) as refused:
        declared("postgres: {url: 'postgresql://db/shop?password=${env:PG}', table: a}")
    assert "encode % in a password or another value as %25" in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("password", ["hunter+22", "hunter%2B22"])
def test_a_password_is_masked_as_it_is_written_and_as_it_is_read(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    """PostgreSQL reads a + as it is, unlike a form."""
    monkeypatch.setenv("PG", password)
    for url in ("postgresql://ann:${env:PG}@db/shop", "postgresql://db/shop?password=${env:PG}"):
        (publication,) = declared(f"postgres: {{url: '{url}', table: a}}").publish.values()
        assert {password, "hunter+22"} <= {*SINKS["postgres"].secrets(publication.sink)}
    given = f"postgresql://db/shop?password={password}&sslmode=require&more=of-it"
    monkeypatch.setenv("PG", given)
    (publication,) = declared("postgres: {url: '${env:PG}', table: a}").publish.values()
    found = {*SINKS["postgres"].secrets(publication.sink)}
    assert {password, "hunter+22", given, "more", "of-it"} <= found
    assert not {"password", "sslmode", "require"} & found


def test_a_placeholder_may_stand_for_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG", "sslmode=require&connect_timeout=5")
    declared("postgres: {url: 'postgresql://db/shop?${env:PG}', table: a}")


def test_an_encoded_password_and_a_user_in_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG", "p%40ss%2Fhunter22")
    for url in ("ann:${env:PG}@db/shop", "db/shop?user=ann@corp&password=${env:PG}"):
        declared(f"postgres: {{url: 'postgresql://{url}', table: a}}")


def test_the_package_is_asked_for_by_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.flow.publish.sinks.postgres.kind.find_spec", lambda name: None)
    (publication,) = declared("postgres: {url: 'postgresql://db/shop', table: a}").publish.values()
    with pytest.raises(NoPackageError) as missing:
        SINKS["postgres"].writer(publication.sink, CONTEXT)
    assert 'pip install "headgate[postgres]"' in missing.value.remedy


@pytest.mark.slow
def test_a_declaration_needs_no_package() -> None:
    code = (
        "import sys; from tests.support.sinks import declared\n"
        "declared(\"postgres: {url: 'postgresql://db/shop', table: a}\")\n"
        "assert 'psycopg2' not in sys.modules"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": path})


def test_connections_have_bounds() -> None:
    assert connecting.CONNECT < connecting.ANSWER < connecting.WRITE
