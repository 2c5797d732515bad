"""Patterns of paths that a person types."""

from __future__ import annotations

import re

import pytest

from headgate.lake.storage.globs import compiled_pattern, literal_pattern, split_pattern


@pytest.mark.parametrize(
    ("pattern", "folder", "rest"),
    [
        ("/a/b/**", "/a/b", "**"),
        ("/a/b/c.json", "/a/b/c.json", ""),
        ("/a/2025-*/x.json", "/a", "2025-*/x.json"),
        ("s3://bucket/a/*.json", "s3://bucket/a", "*.json"),
        ("/a/[bc]/d", "/a", "[bc]/d"),
    ],
)
def test_a_pattern_has_a_folder(pattern: str, folder: str, rest: str) -> None:
    assert split_pattern(pattern) == (folder, rest)


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("**", ["a", "a/b.json"], []),
        ("*.json", ["a.json", ".json"], ["a/b.json", "a.jsonl", "ajson"]),
        ("**/*.json", ["a.json", "a/b.json", "a/b/c.json"], ["a.csv"]),
        ("2025/**/x.json", ["2025/x.json", "2025/01/02/x.json"], ["2025x.json", "2025/xx.json"]),
        ("0[12].json", ["01.json", "02.json"], ["03.json", "0[12].json"]),
        ("0[!12].json", ["03.json"], ["01.json", "0/.json"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("a+(b).json", ["a+(b).json"], ["aa(b).json"]),
        ("[", ["["], ["a"]),
    ],
)
def test_what_a_pattern_matches(pattern: str, matches: list[str], others: list[str]) -> None:
    found = compiled_pattern(pattern)
    assert [path for path in [*matches, *others] if found.fullmatch(path)] == matches


def test_a_name_may_look_like_a_pattern() -> None:
    assert literal_pattern("a[1]*.json") == r"a\[1\]\*.json"
    assert re.fullmatch(r"a\\\[1\\\]\\\*.json", literal_pattern("a[1]*.json"))
