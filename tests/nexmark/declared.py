"""The example ``nexmark``, with all of its queries or a few."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.nexmark.answers import ANSWERS

FILE = Path(__file__).parents[2] / "pipelines/examples/nexmark/nexmark.yml"
LANDING = "landing/nexmark"
"""Where the example reads events, in the folder of the project."""


def declare(folder: Path, queries: Collection[str] = ANSWERS.keys()) -> Pipeline:
    """Write the example into the project ``folder``, with only the tables that some queries need,
    and load it."""
    file = folder / "pipelines/nexmark.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    # JSON is YAML.
    every = {*queries} == ANSWERS.keys()
    file.write_text(FILE.read_text("utf-8") if every else json.dumps(document(queries), indent=2))
    return load(file)


def document(queries: Collection[str]) -> dict[str, Any]:
    """The example with only the tables that some queries need."""
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(FILE.read_text("utf-8"))
    tables = {**found["silver"], **found["gold"]}
    needed, wanted = set[str](), [*queries]
    while wanted:
        needed.add(name := wanted.pop())
        wanted += [each for each in _inputs(tables[name]) if each in tables]
    for layer in ("silver", "gold"):
        found[layer] = {n: table for n, table in found[layer].items() if n in needed}
    return {key: value for key, value in found.items() if value}


def _inputs(table: dict[str, Any]) -> list[str]:
    match table:
        case {"join": {"left": str(left), "right": str(right)}}:
            return [left, right]
        case {"from": str(above)}:
            return [above]
    raise ValueError(f"a table that reads nothing: {table}")
