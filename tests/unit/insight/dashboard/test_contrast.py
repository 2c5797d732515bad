"""Colours of the dashboard, by the rules of WCAG 2."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from headgate.insight.dashboard.boards import answering
from headgate.insight.dashboard.questions import series
from headgate.insight.dashboard.server.pages import STATIC

CSS = (STATIC / "dashboard.css").read_text()
LOGIN = (STATIC / "login.css").read_text()
TEXTS = ("ink", "soft", "accent", "good", "warn", "bad")
GROUNDS = ("ground", "card", "raised", "open")


def themes() -> dict[str, Mapping[str, str]]:
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root[^{]*{(.*?)}", CSS, re.DOTALL)[:2]
    )
    assert light.keys() == dark.keys()
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", LOGIN)
    return {
        "light": light,
        "dark": dark,
        "login, light": {name: one for name, one, _ in pairs},
        "login, dark": {name: other for name, _, other in pairs},
    }


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", themes())
def test_texts_can_be_read(theme: str) -> None:
    colours = themes()[theme]
    weak = {
        (text, ground): round(contrast(colours[text], colours[ground]), 2)
        for text in TEXTS
        for ground in GROUNDS
        if text in colours and ground in colours
        if contrast(colours[text], colours[ground]) < 4.5
    }
    assert weak == {}
    if "on-accent" in colours:
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_and_edges_can_be_seen(theme: str) -> None:
    colours = themes()[theme]
    lines = [name for name in colours if name.startswith("chart-")]
    assert len(lines) == answering.MOST_SERIES == series.MOST_SERIES
    weak = [
        (name, ground)
        for name in ("edge", *lines)
        for ground in ("card", "open")
        if contrast(colours[name], colours[ground]) < 3
    ]
    assert weak == []


def test_every_name_of_a_stylesheet_is_used() -> None:
    scripts = "".join(
        file.read_text() for file in STATIC.iterdir() if file.name.endswith((".js", ".html"))
    )
    for sheet in (CSS, LOGIN):
        rules = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
        variables = {name for name in re.findall(r"(--[\w-]+):", rules) if name[:8] != "--chart-"}
        used = {name for name in variables if f"var({name})" in rules or f'"{name}"' in scripts}
        assert variables == used
        # The names c1, c2 … are computed, and those with u- are a library's.
        classes = {*re.findall(r"\.(\w[\w-]*)", re.sub(r"\{[^{}]*\}", " ", rules))}
        classes = {name for name in classes if not re.match(r"c?\d|u-", name)}
        assert {name for name in classes if not re.search(rf"\b{name}\b", scripts)} == set()
