"""The targets, pages, headings, commands and options that the documents name exist. The tests of
`cli` run the README's commands for a first pipeline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.cli.main import answer

pytestmark = pytest.mark.e2e

CLONE = Path(__file__).parents[2]
README = (CLONE / "README.md").read_text(encoding="utf-8")
_OTHERS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "expectations/README.md")
PAGES = [*(CLONE / other for other in _OTHERS), *sorted((CLONE / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
GROUPS = "expectations|files|gate|kafka|late|publication|quality|quarantine|savepoint"
COMMAND = re.compile(rf"\bheadgate ((?:(?:{GROUPS}) )?[a-z]+)\b([^`\n]*)")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def words(text: str) -> list[str]:
    """The lines that are not blank, with one space between words: the width of columns is
    ignored."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def first_pipeline() -> str:
    """A script of the README's commands for a first pipeline."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return "\n".join(["set -eu", *(line for line in lines if not line.startswith("make "))])


def told() -> list[str]:
    """The lines of output that the README shows."""
    return words("\n".join(blocks("text")))


def _name(page: Path) -> str:
    return page.relative_to(CLONE).as_posix()


def test_make_targets_exist() -> None:
    makefile = (CLONE / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    told = "\n".join(blocks("sh")) + "".join(p.read_text("utf-8") for p in PAGES[1:])
    named = re.findall(r"^make ([a-z]+)|`make ([a-z]+)", told, re.MULTILINE)
    assert {"demo", "test"} <= {first or second for first, second in named} <= targets


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_and_their_options_exist(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "\n".join(
        re.findall(r"`headgate [^`]+`|^\$? ?headgate .*$", page.read_text("utf-8"), re.M)
    )
    for verb, rest in COMMAND.findall(text):
        assert answer([*verb.split(), "--help"]) == 0, verb
        help_text = capsys.readouterr().out
        for option in re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest):
            assert option in help_text, f"{verb} {option}"
