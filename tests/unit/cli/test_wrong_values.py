"""Values that no option takes: one line says why, and the exit code is 2."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Ask

OfLake = tuple[str, str, str]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vacuum", "PIPELINE", "--keep-for", "-1 hours"], "negative"),
        (["upgrade", "PIPELINE", "--patience", "-1"], "--patience"),
        (["upgrade", "PIPELINE", "--patience", "nan"], "--patience"),
        (["load", "PIPELINE", "--share", "nan"], "--share"),
        (["quarantine", "list", "PIPELINE", "--since", "-2 hours"], "neither a time"),
        (["backfill", "PIPELINE", "--from", "-2 days", "--dry-run"], "neither a time"),
        (["late", "show", "PIPELINE", "gold.per_minute", "--from", "-1 days"], "neither a time"),
    ],
)
def test_a_wrong_value_is_refused(
    ask: Ask, of_lake: OfLake, arguments: list[str], said: str
) -> None:
    typed = [word for given in arguments for word in (of_lake if given == "PIPELINE" else [given])]
    code, out, err = ask(*typed)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err
