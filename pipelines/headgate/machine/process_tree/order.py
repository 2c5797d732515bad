"""The order of a guard: its owner writes it as one line of JSON to the guard's stdin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Child:
    """``prepared``: it starts after the order's ``prepare``. ``ended`` is what happens when it
    ends: it is started again, it is left ended, or the whole tree ends."""

    command: Sequence[str]
    prepared: bool = True
    ended: Literal["again", "left", "all end"] = "again"


@dataclass(frozen=True)
class Order:
    """``folder`` is locked while the tree runs; ``logs`` is the folder in it for the output of each
    child. ``files`` are written to ``folder`` first, readable by this user only. ``tell`` is
    published in the document of the running tree. An ``owned`` tree ends with the process that
    started it.

    Members have ``graces`` seconds to end: first the sessions that children lead, then others.
    ``expires`` has folders, and the seconds after which files that are no longer written are
    removed.
    """

    folder: str
    work: str
    environment: Mapping[str, str]
    children: Mapping[str, Child]
    tell: Mapping[str, Any]
    graces: tuple[float, float]
    logs: str = "logs"
    prepare: Sequence[str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    expires: Mapping[str, float] = field(default_factory=dict)
    owned: bool = True

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def read(line: bytes) -> Order:
        document = json.loads(line)
        children = {name: Child(**child) for name, child in document.pop("children").items()}
        return Order(children=children, **document)

    @property
    def log_folder(self) -> Path:
        return Path(self.folder, self.logs)
