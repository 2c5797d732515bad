"""The dashboard that runs beside Airflow."""

from __future__ import annotations

from pathlib import Path

from headgate.insight.dashboard.login.passwords import Password
from headgate.setup.standalone.dashboard import beside


def test_it_has_a_password_of_its_own(tmp_path: Path) -> None:
    first = beside([Path("/p/a.yml")], tmp_path, any_port=True)
    words = first.child.command
    assert words[-7:-2] == ("dashboard", "/p/a.yml", "--root", str(tmp_path), "--port")
    assert words[-1] == "--awaits-password", "a password of its own would be in its log"
    assert first.address == f"http://127.0.0.1:{words[-2]}/"
    password = first.password()
    assert password is not None
    assert Password(first.keep).is_right(password)
    assert beside([], tmp_path, any_port=True).password() is None, "it was shown"


def test_a_start_that_was_killed_has_no_password(tmp_path: Path) -> None:
    """It was not shown, so the next start makes one. A server that was started before it was made
    takes it."""
    killed = beside([], tmp_path, any_port=True)
    serving = Password(killed.keep)
    password = beside([], tmp_path, any_port=True).password()
    assert password is not None
    assert serving.is_right(password)
