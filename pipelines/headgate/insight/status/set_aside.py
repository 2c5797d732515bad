"""Files that could not be read and were set aside: their records are in no table until a person
acts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import FILES
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural
from headgate.flow.sources.deployed_source import DeployedSource, UnreadInput
from headgate.flow.sources.excerpts import some_of
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.log import newest_commit

SET_ASIDE = "set_aside"
"""The status of such a file, and the key of their number in the commits of a files log."""
_SHOWN = 3


@dataclass(frozen=True)
class SetAside:
    """The files of a source that are set aside; at least one."""

    source: str
    files: tuple[UnreadInput, ...]

    def __str__(self) -> str:
        is_one = len(self.files) == 1
        what = "is set aside, and none of its" if is_one else "are set aside, and none of their"
        names = some_of([f"{file.path} ({file.reason})" for file in self.files], _SHOWN)
        return f"{plural(len(self.files), 'file')} {what} records is in the tables: {names}"

    @property
    def remedy(self) -> str:
        """What to do, with commands."""
        skip = pipeline_command("files skip", "--set-aside")
        return (
            f"see them all: {pipeline_command('files list', '--unread')}\n"
            f"put each into the folder under a new name, repaired, then: {skip}"
        )


def set_aside(layout: Layout, declared: Pipeline) -> Iterator[SetAside]:
    """The sources of a pipeline that have such files. Reads no data file if there are none. Raises
    LogGapError or DamagedFileError if a files log is damaged."""
    for node in graph_of(declared).of(FILES):
        commit = newest_commit(layout.storage.at(node.path))
        if commit is None or not commit.state.total.get(SET_ASIDE):
            continue
        source = declared.sources[node.name]
        place = DeployedSource(layout.storage, declared.name, source)
        listed = connector_of(source).unread(place) or ()
        yield SetAside(node.name, tuple(each for each in listed if each.status == SET_ASIDE))
