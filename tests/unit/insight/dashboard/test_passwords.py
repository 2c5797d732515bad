"""The password of a dashboard, and the file of its hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.insight.dashboard.login.passwords import (
    FILE,
    Password,
    PasswordFileError,
    close,
    made,
)
from tests.support.full_disk import run_on_full_disk


def on_full_disk(code: str, folder: Path) -> str:
    return run_on_full_disk(
        f"from headgate.insight.dashboard.login.passwords import *\n{code}", folder
    )


def test_a_full_disk_leaves_no_password_that_nobody_has_seen(tmp_path: Path) -> None:
    assert "OSError" in on_full_disk("made(Path(sys.argv[1]))", tmp_path)
    assert not (tmp_path / FILE).exists()
    password = made(tmp_path)
    assert password is not None
    assert Password(tmp_path).is_right(password)


def test_a_full_disk_keeps_the_password(tmp_path: Path) -> None:
    password = made(tmp_path)
    assert password is not None
    assert "OSError" in on_full_disk("made(Path(sys.argv[1]), anew=True)", tmp_path)
    assert Password(tmp_path).is_right(password)


@pytest.mark.parametrize(
    "damaged", ["", "{}", "[]", '{"salt": "00"', '{"salt": "0", "scrypt": ""}']
)
def test_a_damaged_file_is_replaced(tmp_path: Path, damaged: str) -> None:
    (tmp_path / FILE).write_text(damaged)
    password = made(tmp_path)
    assert password is not None
    assert Password(tmp_path).is_right(password)


def test_nobody_gets_in_before_the_password_is_made(tmp_path: Path) -> None:
    close(tmp_path)
    serving = Password(tmp_path)
    assert not serving.is_right("")
    password = made(tmp_path)
    assert password is not None
    assert serving.is_right(password)
    close(tmp_path)
    assert serving.is_right(password), "it stays as it was"
    assert made(tmp_path) is None


def test_a_new_password_is_valid_at_once(tmp_path: Path) -> None:
    first = made(tmp_path)
    serving = Password(tmp_path)
    second = made(tmp_path, anew=True)
    assert first is not None
    assert second is not None
    assert (serving.is_right(first), serving.is_right(second)) == (False, True)
    (tmp_path / FILE).unlink()
    assert serving.is_right(second), "until there is another one"
    with pytest.raises(PasswordFileError, match="hash cannot be read"):
        Password(tmp_path)
