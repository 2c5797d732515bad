"""Addresses of PostgreSQL servers, and the secrets in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from urllib.parse import SplitResult, unquote, urlsplit

from headgate.declaration.errors import Invalid
from headgate.declaration.reading.placeholders import has_placeholder

_SCHEMES = ("postgresql", "postgres")
_SECRET_PARAMETERS = ("password", "sslpassword", "passfile")
_PUBLIC = (
    *("application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname"),
    *("fallback_application_name", "gssencmode", "host", "hostaddr", "keepalives"),
    *("keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts"),
    *("options", "port", "require_auth", "service", "sslcert", "sslkey", "sslmode"),
    *("sslnegotiation", "sslrootcert", "target_session_attrs", "tcp_user_timeout", "user"),
)
"""Parameters that may be shown also if the whole address is secret."""
_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
_SHORTEST = 3  # shorter texts occur in every message


def check_url(url: str, written: str | None) -> None:
    """Raises Invalid if ``url`` is not an address or has a plain password. The message contains no
    part of the resolved url. ``written`` is the text with placeholders; None if it has none."""
    example = "postgresql://USER@HOST:PORT/DATABASE"
    try:
        parts = urlsplit(url)
        _require_one_reading(url, parts)
        _require_plain_query(url, written)
        port = parts.port
    except ValueError:
        raise Invalid(f"is not an address such as {example}") from None
    if parts.scheme not in _SCHEMES or port == 0:
        raise Invalid(f"is not an address such as {example}")
    shown = urlsplit(written or url)
    given = [shown.password, *_secret_values(shown.query)]
    if any(text and not has_placeholder(text) for text in given):
        raise Invalid("has a password; write ${env:NAME} or ${file:PATH} in its place")


def _require_one_reading(url: str, parts: SplitResult) -> None:
    """Raises Invalid if the client library of PostgreSQL could find another end of the user or the
    password than this program: its messages would show the rest of a password as the host or
    database."""
    rest = url.partition("://")[2]
    ends = rest.partition("/")[0].count("@")
    # An @ in a value of the query, such as a user, is allowed: it comes after a =.
    late = "@" in parts.path or (not ends and "@" in rest.partition("=")[0])
    if ends > 1 or ends != parts.netloc.count("@") or late:
        raise Invalid(
            "is ambiguous; encode @ in the user or the password as %40, / as %2F, "
            "? as %3F and # as %23"
        )


def _require_plain_query(url: str, written: str | None) -> None:
    """Raises Invalid if the client library could read a query differently than it is meant: its
    messages would show a part of a password."""
    names = [name for name, _ in _parameters(urlsplit(url).query)]
    meant = [name for name, _ in _parameters(urlsplit(written or url).query)]
    # A placeholder may stand for the whole address, or for whole parameters.
    is_known = (written or url).startswith(_SCHEMES) and not any(map(has_placeholder, meant))
    if (is_known and names != meant) or "#" in url or _BAD_ESCAPE.search(url):
        raise Invalid(
            "is ambiguous; encode % in a password or another value as %25, & as %26 and # as %23"
        )


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    """The names and values of a query as they are written. Unlike in forms, + is no space."""
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        yield unquote(name), value


def _secret_values(query: str) -> Iterator[str]:
    return (value for name, value in _parameters(query) if name in _SECRET_PARAMETERS)


def secrets_in_url(url: str, written: str | None) -> Iterator[str]:
    """The parts of an address that must not be shown."""
    parts = urlsplit(url)
    found = [*_secret_values(parts.query), *([parts.password] if parts.password else [])]
    if written is not None and not written.startswith(_SCHEMES):  # any part of it may be a secret
        given = (pair for pair in _parameters(parts.query) if pair[0] not in _PUBLIC)
        found += [url, *({*chain.from_iterable(given)} - {*_SECRET_PARAMETERS})]
    found += map(unquote, tuple(found))
    yield from (text for text in found if len(text) >= _SHORTEST)


def server_of(written: str) -> tuple[str, str] | None:
    """The server, as ``postgres://HOST:PORT``, and the database of an address as it is written;
    None if one of them is missing or contains a placeholder."""
    parts = urlsplit(written)
    server, database = parts.netloc.rpartition("@")[2], parts.path.strip("/")
    if not server or not database or has_placeholder(f"{server}/{database}"):
        return None
    return f"postgres://{parts.hostname}:{parts.port or 5432}", database
