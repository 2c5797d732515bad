"""A declaration with any change loads or is refused; no other error occurs."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from headgate.declaration.errors import DeclarationError
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.support.rounds import IN_FULL
from tests.unit.declaration.conftest import KAFKA
from tests.unit.declaration.test_load import ROOT

pytestmark = pytest.mark.slow

TEXT = (ROOT / "pipelines" / "examples" / "auctions.yml").read_text(encoding="utf-8")
SUITES = {
    name: (ROOT / "expectations" / f"{name}.yml").read_text(encoding="utf-8")
    for name in ("clean_bids", "channels_sliding")
}
SUITE = SUITES["clean_bids"]
TREES = [YAML(typ="safe", pure=True).load(text) for text in (TEXT, KAFKA)]

WORDS = (
    """
1 minute|0 s|sum(price)|count(*)|price / 0|lower(|'|`|${env:X}|bids|clean_bids|auction|rand()
localhost:9092|a:1,b|gold.sales|late.orders|latest|2026-11-20T00:00:00Z|(a+)+|*.orders|read_committed
decimal(38,38)|(select 1)|epoch_millis|price::timestamp|to_date(url, 'yyyy-MM-dd')|1e400 * price
+-5|event_time - interval '--5' day|channel -> 1BD|1.5L|to_date(, 'yy')|comment is not null|price,
""".strip()
    .replace("\n", "|")
    .split("|")
)
WORDS += [
    f"to_timestamp(concat(channel, '{'x' * 4500}')) is null",
    f"cast(coalesce(price{', 1' * 1500}) as timestamp)",
]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=20),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.sampled_from(WORDS),
)
NAMES = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        [
            "from",
            "window",
            "hopping",
            "sql",
            "by",
            "where",
            "_x",
            "null",
            "bids",
            "group.id",
            "pattern",
        ]
    ),
)


def paths(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node in a tree except the root."""
    items: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    return [p for key, value in items for p in [(*path, key), *paths(value, (*path, key))]]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    tree = copy.deepcopy(draw(st.sampled_from(TREES)))
    for path in draw(st.lists(st.sampled_from(paths(tree)), min_size=1, max_size=3)):
        holder = tree
        for key in path[:-1]:
            try:
                holder = holder[key]
            except (KeyError, IndexError, TypeError):
                holder = None
        if not isinstance(holder, dict) or path[-1] not in holder:
            continue
        change = draw(st.sampled_from(["delete", "rename", "retype"]))
        if change == "retype":
            holder[path[-1]] = draw(VALUES)
        else:
            value = holder.pop(path[-1])
            if change == "rename":
                holder[draw(NAMES)] = value
    out = io.StringIO()
    YAML(typ="safe", pure=True).dump(tree, out)
    return out.getvalue()


def loads_or_is_refused(file: Path, text: str, suite: str = SUITE) -> bool:
    """Whether it loads."""
    (file.parent / "expectations").mkdir(exist_ok=True)
    for name, content in {**SUITES, "clean_bids": suite}.items():
        suite_file = file.parent / "expectations" / f"{name}.yml"
        suite_file.write_text(content, "utf-8", "surrogatepass")
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    result: Pipeline | DeclarationError
    try:
        result = load(file)
    except DeclarationError as error:
        result = error
    if isinstance(result, Pipeline):
        assert len(result.digest) == 64
        return True
    assert result.problems
    assert all(problem.line >= 1 for problem in result.problems)
    assert str(result).endswith(f"headgate plan {file}")
    return False


SETTINGS = settings(
    max_examples=400 if IN_FULL else 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@SETTINGS
@given(text=mutated())
def test_a_changed_tree(text: str, tmp_path: Path) -> None:
    loads_or_is_refused(tmp_path / "changed.yml", text)


@SETTINGS
@given(
    at=st.integers(0, len(TEXT)),
    gone=st.integers(0, 30),
    put=st.one_of(
        st.text(max_size=10), st.sampled_from(["{", "]", ": ", "\n", "\t", "|", "&a ", "*a"])
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_changed_text(at: int, gone: int, put: str, end: str, tmp_path: Path) -> None:
    text = TEXT[:at] + put + TEXT[at + gone :]
    loads_or_is_refused(tmp_path / "changed.yml", text.replace("\n", end))


@SETTINGS
@given(
    at=st.integers(0, len(SUITE)),
    gone=st.integers(0, 30),
    put=st.one_of(st.text(max_size=10), st.sampled_from(["{", "]", ": ", "\n", "- ", "20 %"])),
)
def test_a_changed_suite(at: int, gone: int, put: str, tmp_path: Path) -> None:
    loads_or_is_refused(tmp_path / "changed.yml", TEXT, SUITE[:at] + put + SUITE[at + gone :])


@SETTINGS
@given(text=st.text(alphabet="abc'\"`()[]{},.:;|&^~!<>=+-*/% \n\\0123eE", max_size=30))
@pytest.mark.parametrize("old", ["price > 0", "lower(channel)", "sum(price)", "volume / bids"])
def test_any_expression(old: str, text: str, tmp_path: Path) -> None:
    quoted = "'" + text.replace("'", "''").replace("\n", " ") + "'"
    loads_or_is_refused(tmp_path / "changed.yml", TEXT.replace(old, quoted))


def test_without_a_change_it_loads(tmp_path: Path) -> None:
    assert loads_or_is_refused(tmp_path / "changed.yml", TEXT)


PLACES = [
    ("sources", "bids", "files", "max_files_per_batch"),
    ("sources", "bids", "record", "schema", "price"),
    ("silver", "clean_bids", "columns", "channel"),
    ("silver", "clean_bids", "columns", "added"),
    ("gold", "bids_per_minute", "where"),
    ("gold", "bids_per_minute", "window", "tumbling"),
    ("gold", "bids_per_minute", "measures", "top"),
]


@pytest.mark.parametrize("word", WORDS)
def test_each_word_where_it_may_mean_something(word: str, tmp_path: Path) -> None:
    for path in PLACES:
        tree = copy.deepcopy(TREES[0])
        holder = tree
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = word
        loads_or_is_refused(tmp_path / "changed.yml", json.dumps(tree))  # JSON is YAML
