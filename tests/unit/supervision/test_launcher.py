"""Launchers by name."""

from __future__ import annotations

import pytest

from headgate.supervision.launcher import LOCAL, LocalLauncher, NoSuchLauncherError, launcher_of


def test_the_shipped_launcher() -> None:
    assert isinstance(launcher_of(LOCAL), LocalLauncher)


@pytest.mark.parametrize("name", ["", "local", "no.such:Launcher", "headgate.supervision:Nothing"])
def test_a_launcher_that_is_not_there(name: str) -> None:
    with pytest.raises(NoSuchLauncherError, match=f"no launcher {name}") as error:
        launcher_of(name)
    assert LOCAL in error.value.remedy
