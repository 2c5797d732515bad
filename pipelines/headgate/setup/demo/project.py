"""A copy of the auctions example for the demo, which reads and writes nothing outside its
folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from headgate.declaration.load import load
from headgate.declaration.suites.reading import FOLDER
from headgate.errors import HeadgateError
from headgate.setup.demo.generator import TABLE

_DASHBOARDS = Path(__file__).parent / "dashboards"
_GATE = f"    expectations: {TABLE}\n"
_FILES = "files: {path: landing/bids, format: json, order: name}"
_SERVERS = "kafka: {servers: 127.0.0.1:9092,"
# The demo's producer renames complete files into place, so no settle time is needed.
_DEMO_FILES = "files: {path: landing/bids, format: json, order: name, settle: 0 seconds}"


def make(folder: Path, example: Path, servers: str | None = None) -> Path:
    """Write the example, its suites and a dashboard into ``folder``, and return the example's path.
    With ``servers``, the example reads a topic of that broker.

    Raises HeadgateError if the folder holds a project already: its tables hold other events.
    """
    require_new(folder)
    file = folder / "pipelines" / example.name
    text = example.read_text(encoding="utf-8")
    there, here = (_FILES, _DEMO_FILES)
    if servers is not None:
        there, here = _SERVERS, f"kafka: {{servers: {servers},"
    if not has_gates():
        text = text.replace(_GATE, "")
    if there not in text:
        raise HeadgateError(
            f"{example} is not the example that the demo knows",
            remedy="restore it: git checkout -- pipelines/examples, or install Headgate again",
        )
    for name, suite in load(example).suites.items():
        into = folder / FOLDER / f"{name}.yml"
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_text(suite, encoding="utf-8")
    for source in _DASHBOARDS.glob("*.yml"):
        into = folder / _DASHBOARDS.name / source.name
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_bytes(source.read_bytes())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace(there, here), encoding="utf-8")
    if servers is None:
        landing(folder).mkdir(parents=True, exist_ok=True)
    return file


def has_gates() -> bool:
    """Whether versions of gold can be validated: this needs Great Expectations, which is an
    extra."""
    return find_spec("great_expectations") is not None


def require_new(folder: Path) -> None:
    """Raises HeadgateError if the folder holds a project already: a demo, or a person's own."""
    if (folder / "pipelines").exists():
        raise HeadgateError(f"{folder} holds a project already", remedy="choose another folder")


def landing(folder: Path) -> Path:
    return folder / "landing" / "bids"


def lake(folder: Path) -> Path:
    """The root of the tables, apart from the landing folder."""
    return folder / "lake"
