"""``metrics`` in a declaration."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import MetricsSettings, Pipeline
from headgate.machine.loopback import is_loopback
from tests.unit.insight.ledger.conftest import DECLARATION


def declared(folder: Path, metrics: str) -> Pipeline:
    file = folder / "tiny.yml"
    file.write_text(f"{DECLARATION}{metrics}\n")
    return load(file)


def test_without_the_section_nothing_is_served(tmp_path: Path) -> None:
    assert declared(tmp_path, "").metrics is None


def test_it_says_where_metrics_are_served(tmp_path: Path) -> None:
    found = declared(tmp_path, "metrics: {port: 9464}").metrics
    assert found == MetricsSettings(9464, "127.0.0.1", None, None)
    found = declared(tmp_path, "metrics: {latency_within: 30 seconds}").metrics
    assert found == MetricsSettings(None, "127.0.0.1", None, timedelta(seconds=30))


def test_it_is_no_other_pipeline(tmp_path: Path) -> None:
    plain = declared(tmp_path, "")
    served = declared(tmp_path, "metrics: {port: 9464}")
    assert (plain.digest, plain.definitions) == (served.digest, served.definitions)


def test_other_machines_need_a_token(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "example.org"):
        with pytest.raises(DeclarationError, match="add token_file, or listen at 127.0.0.1"):
            declared(tmp_path, f"metrics: {{port: 9464, host: {host}}}")
    found = declared(tmp_path, "metrics: {port: 9464, host: 0.0.0.0, token_file: secret}").metrics
    assert found is not None
    assert found.token_file == tmp_path / "secret"


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")],
)
def test_what_is_this_machines_own(host: str, is_own: bool) -> None:
    assert is_loopback(host) == is_own


@pytest.mark.parametrize(
    "wrong", ["{port: 0}", "{port: 70000}", "{port: +-5}", "{ports: 1}", "9464"]
)
def test_what_is_wrong_is_told(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(DeclarationError, match="metrics"):
        declared(tmp_path, f"metrics: {wrong}")


def test_an_open_host_is_told_on_its_line_and_not_if_the_token_is_wrong(tmp_path: Path) -> None:
    opened = "metrics:\n  port: 9464\n  host: 0.0.0.0"
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, opened)
    (problem,) = caught.value.problems
    assert (problem.key, problem.line) == ("metrics.host", len(DECLARATION.splitlines()) + 3)
    with pytest.raises(DeclarationError) as caught:
        declared(tmp_path, f"{opened}\n  token_file: [secret]")
    assert [problem.key for problem in caught.value.problems] == ["metrics.token_file"]
