"""Verbs that read tables or send a request to a driver, if the secrets of sinks are not set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake

SINKS = """
publish:
  rows:
    from: gold.per_minute
    postgres: {url: 'postgresql://ann:${env:NO_SUCH}@db.internal/shop', table: sales}
  whole:
    from: gold.per_minute
    postgres: {url: '${env:NO_SUCH}', table: others}
  calls:
    from: late.per_minute
    webhook: {url: '${file:no-such}', secret: '${env:NO_SUCH}', headers: {X-Key: '${env:NO_SUCH}'}}
  messages:
    from: quarantine.events
    kafka: {servers: '${env:NO_SUCH}', topic: bad, options: {ssl.key.password: '${env:NO_SUCH}'}}
"""


@pytest.fixture(autouse=True)
def declared(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NO_SUCH", raising=False)
    file = lake.pipeline.file
    file.write_text(file.read_text() + SINKS)
    return file


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("status", ()),
        ("ledger", ()),
        ("versions", ()),
        ("query", ("SELECT count(*) FROM good",)),
        ("stop", ()),
        ("gate status", ()),
        ("publication list", ()),
        ("savepoint list", ()),
        ("files list", ()),
        ("compact", ()),
        ("vacuum", ("--dry-run",)),
        ("backfill", ()),
        ("load", ()),
        ("expectations list", ()),
    ],
)
def test_who_reads_needs_none(
    verb: str, more: tuple[str, ...], ask: Ask, of_lake: tuple[str, str, str]
) -> None:
    pipeline, *root = of_lake
    code, out, err = ask(*verb.split(), pipeline, *more, *root)
    assert code == 0, err
    assert "NO_SUCH" not in out + err
    assert "no-such" not in out + err


@pytest.mark.parametrize("verb", ["plan", "start", "restart", "run"])
def test_who_starts_a_driver_is_told_what_to_set(
    verb: str, ask: Ask, of_lake: tuple[str, str, str]
) -> None:
    code, _, err = ask(verb, *of_lake)
    assert code == 2
    assert err.count("the environment variable NO_SUCH is not set; type: export NO_SUCH=...") == 6
    assert "publish.calls.webhook.url: the file no-such of ${file:no-such} cannot be read" in err


@pytest.mark.parametrize("verb", ["pause", "resume", "late list", "quarantine list"])
def test_nor_who_fails_for_another_reason(
    verb: str, ask: Ask, of_lake: tuple[str, str, str]
) -> None:
    _, out, err = ask(*verb.split(), *of_lake)
    assert "NO_SUCH" not in out + err


def test_other_mistakes_are_found_all_the_same(
    declared: Path, ask: Ask, of_lake: tuple[str, str, str]
) -> None:
    declared.write_text(declared.read_text().replace("table: others", "table: 'no table'"))
    code, _, err = ask("status", *of_lake)
    assert code == 2
    assert "publish.whole.postgres.table" in err


def test_secrets_are_hidden_from_the_first_check_on(
    declared: Path, ask: Ask, of_lake: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_SUCH", "p4ssw0rd-of-the-sink")
    declared.write_text("".join(declared.read_text().partition("  whole:")[0]))

    def fail(*_: object) -> None:
        raise ValueError("refused p4ssw0rd-of-the-sink")

    monkeypatch.setattr("headgate.cli.lifecycle.background._require_startable", fail)
    code, _, err = ask("start", *of_lake)
    assert (code, "refused ***" in err) == (70, True), err
