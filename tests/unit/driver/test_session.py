"""The settings of a session."""

from __future__ import annotations

from pathlib import Path

from headgate.driver.session import _OPTIONS, _settings


def test_no_path_is_among_the_options_of_the_jvm() -> None:
    """Spark would split the options at the spaces of the path."""
    assert "scratch" not in _settings(2, Path("/my shop/scratch"))[_OPTIONS]


def test_a_folder_with_a_comma_is_not_taken_for_two() -> None:
    assert _settings(2, Path("/s"))["spark.local.dir"] == "/s"
    assert "spark.local.dir" not in _settings(2, Path("/a,b"))
