"""The dashboard that runs beside Airflow."""

from __future__ import annotations

from pathlib import Path

from headgate.dashboard.login.passwords import Password
from headgate.standalone.dashboard import beside


def test_it_has_a_password_of_its_own(tmp_path: Path) -> None:
    first = beside([Path("/p/a.yml")], tmp_path, any_port=True)
    assert first.password is not None
    assert Password(first.keep).is_right(first.password)
    words = first.child.command
    assert words[-6:] == ("dashboard", "/p/a.yml", "--root", str(tmp_path), "--port", words[-1])
    assert first.address == f"http://127.0.0.1:{words[-1]}/"
    assert not any(first.password in word for word in words)
    assert beside([], tmp_path, any_port=True).password is None, "it was shown"


def test_a_password_that_nobody_has_seen_is_forgotten(tmp_path: Path) -> None:
    first = beside([], tmp_path, any_port=True)
    first.forget()
    second = beside([], tmp_path, any_port=True)
    assert second.password not in (None, first.password)
