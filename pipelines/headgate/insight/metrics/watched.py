"""The pipelines whose metrics one process serves, as their declarations are now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from headgate.declaration.files import is_preferred
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms
from headgate.lake.storage.layout import CONTROL, Layout

LOOK_EVERY = 5.0  # seconds between two checks of the files of declarations

_Version = tuple[int, int]
_NEVER_READ = (-1, -1)


@dataclass
class _WatchedFile:
    """``declared`` is the last version of the file that was valid; None if there was none.
    ``version`` is None while there is no file. ``reading`` is created when it is needed, because
    its series exist from then on."""

    version: _Version | None = _NEVER_READ
    declared: Pipeline | None = None
    reading: PipelineReading | None = None


class Watched:
    """``files`` returns the declarations. A file that changes is loaded again; if it has become
    invalid, the metrics stay those of its last valid version, and ``headgate_readable`` says so.

    With ``only_run``, pipelines that have never run under ``root`` are left out. Of two files that
    declare the same name, the one called NAME.yml counts, else the first: Prometheus would refuse
    all metrics if two series were the same. ``say`` is called with the problem of a file whenever
    it cannot be loaded.
    """

    def __init__(
        self,
        files: Callable[[], Iterable[Path]],
        root: str,
        histograms: Histograms,
        *,
        only_run: bool,
        say: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._root, self._histograms = files, root, histograms
        self._only_run, self._say, self._monotonic = only_run, say, monotonic
        self._watched: dict[Path, _WatchedFile] = {}
        self._due = float("-inf")
        self._readings: tuple[PipelineReading, ...] = ()

    def readings(self) -> tuple[PipelineReading, ...]:
        if self._monotonic() >= self._due:
            self._due = self._monotonic() + LOOK_EVERY
            self._look()
        return self._readings

    def _look(self) -> None:
        files = tuple(self._files())
        self._watched = {file: self._watched.get(file, _WatchedFile()) for file in files}
        by_name: dict[str, tuple[Path, Pipeline]] = {}
        for file, watched in self._watched.items():
            if (version := _version(file)) != watched.version:
                watched.version = version
                self._load(file, watched)
            declared = watched.declared
            if declared is None or not self._is_wanted(declared):
                continue
            before, _ = by_name.get(declared.name, (None, None))
            if is_preferred(file, before, declared.name):
                by_name[declared.name] = file, declared
        self._readings = tuple(self._reading(*each) for each in by_name.values())

    def _reading(self, file: Path, declared: Pipeline) -> PipelineReading:
        watched = self._watched[file]
        if watched.reading is None:
            layout = Layout.of(self._root, declared.name)
            watched.reading = PipelineReading(declared, layout, self._histograms)
        return watched.reading

    def _load(self, file: Path, watched: _WatchedFile) -> None:
        try:
            watched.declared, watched.reading = load(file, needs_secrets=False), None
        except HeadgateError as error:
            self._say(f"{file}: not read: {error}")
            if watched.reading is not None:
                watched.reading.is_current = False

    def _is_wanted(self, declared: Pipeline) -> bool:
        layout = Layout.of(self._root, declared.name)
        return not self._only_run or layout.storage.exists(CONTROL)


def _version(file: Path) -> _Version | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
