"""What the page's files must not do, because they show texts from files and events."""

from __future__ import annotations

import re
from importlib import resources

import pytest

STATIC = resources.files("headgate.airflow.page") / "static"
FILES = {file.name: file.read_text(encoding="utf-8") for file in STATIC.iterdir()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))


def test_no_text_becomes_markup() -> None:
    forbidden = r"innerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
    assert {name for name, text in FILES.items() if re.search(forbidden, text)} == set()


def test_nothing_comes_from_elsewhere() -> None:
    """The only address is the name of SVG's namespace, from which nothing is loaded."""
    namespace = "http://www.w3.org/2000/svg"
    found = {n for n, text in FILES.items() if re.search(r"(?:https?:)?//[a-z]", _code(text))}
    assert found <= {n for n in FILES if namespace in FILES[n]}


def _code(text: str) -> str:
    return re.sub(r"(?m)^\s*(?://|\*|/\*).*$", "", text)


def test_no_handler_or_style_stands_in_the_page() -> None:
    page = FILES["page.html"]
    assert not re.search(r"\son[a-z]+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_imported_is_there(name: str) -> None:
    for names, other in re.findall(r'import \{([^}]*)\} from "\./([^"]+)"', FILES[name]):
        for wanted in (each.strip() for each in names.split(",")):
            assert re.search(rf"export (?:async )?(?:function|const) {wanted}\b", FILES[other])


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_are_small(name: str) -> None:
    assert len(FILES[name].splitlines()) <= 300


def test_every_element_that_a_script_selects_is_in_the_page() -> None:
    text = "\n".join(FILES[name] for name in SCRIPTS)
    wanted = set(re.findall(r'(?:find|getElementById)\("([a-z]+)"\)', text))
    assert wanted
    for each in wanted:
        assert FILES["page.html"].count(f'id="{each}"') == 1, each


def test_no_element_of_the_page_is_there_twice() -> None:
    ids = re.findall(r'\sid="([^"]*)"', FILES["page.html"])
    assert len(set(ids)) == len(ids) > 0
