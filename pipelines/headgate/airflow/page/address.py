"""The addresses of Airflow's pages and of this page, also behind a proxy with a path prefix."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf

PREFIX = "/headgate"


def shell_address() -> str:
    """The path of Airflow's own pages, without a slash at its end."""
    return urlsplit(str(conf.get("api", "base_url", fallback=""))).path.rstrip("/")


def page_address() -> str:
    return f"{shell_address()}{PREFIX}/"
