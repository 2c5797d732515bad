"""The files of a folder and of its folders: each file once, however many names lead to it.

Links are followed. If a link leads to a folder or file that is listed already, to a folder above
it, or round in a circle, the first name counts. A hard link is a second name of a file.
"""

from __future__ import annotations

import errno
import os
import stat as modes
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter

from headgate.lake.storage.files import Stat, Storage, stat_of

_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""Errors of a link that leads nowhere, or only to itself."""


@dataclass(frozen=True)
class Tree:
    """``files`` has each file once, in no particular order. ``unnamed`` are files and folders whose
    names are not UTF-8, in a form that can be shown."""

    files: list[Stat] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    _others: dict[str, list[str]] = field(default_factory=dict)
    _folders: list[tuple[str, str]] = field(default_factory=list)

    def named(self, is_known: Callable[[str], bool]) -> Iterable[Stat]:
        """The files. A file that is known by another of its names gets that name."""
        if not self._others and not self._folders:
            return self.files
        return (self._named(file, is_known) for file in self.files)

    def _named(self, file: Stat, is_known: Callable[[str], bool]) -> Stat:
        path = next(filter(is_known, self._names(file.path)), file.path)
        return file if path == file.path else replace(file, path=path)

    def _names(self, path: str) -> Iterator[str]:
        names = (path, *self._others.get(path, ()))
        yield from names
        for folder, other in self._folders:
            yield from (other + n.removeprefix(folder) for n in names if n.startswith(folder))


def tree_of(storage: Storage, ignored: tuple[str, ...]) -> Tree:
    """The files of a folder, except those whose names, or whose folders' names, begin with one of
    ``ignored``. Empty if the folder does not exist. Raises OSError if a folder may not be read."""
    if not storage.is_local:
        listed = storage.list(recursive=True)
        return Tree([each for each in listed if not _is_ignored(each.path, ignored)])
    walk = _Walk(storage.root, tuple(map(os.fsencode, ignored)))
    walk.add_all()
    return walk.tree


def _is_ignored(path: str, ignored: tuple[str, ...]) -> bool:
    return any(part.startswith(ignored) for part in path.split("/"))


class _Walk:
    """Paths are bytes, because a name may not be UTF-8. The relative path of a folder ends with a
    slash; that of the root is empty."""

    def __init__(self, root: str, ignored: tuple[bytes, ...]) -> None:
        self.tree = Tree()
        self._root, self._ignored = os.path.realpath(os.fsencode(root)), ignored
        self._visited: dict[bytes, bytes] = {}
        self._links: list[tuple[bytes, bytes]] = []
        self._file_links: list[tuple[bytes, bytes]] = []
        self._targets: dict[bytes, str] = {}
        self._linked: dict[tuple[int, int], list[Stat]] = {}

    def add_all(self) -> None:
        self._descend(self._root, b"")
        while links := sorted(self._links):
            self._links = []
            for path, link in links:
                self._follow(path, os.path.realpath(link))
        # Last, because their files may be in folders that other links lead to.
        for path, target in sorted(self._file_links):
            self._add_target(path, target)
        for found in self._linked.values():
            first, *others = sorted(found, key=attrgetter("path"))
            self.tree.files.append(first)
            self.tree._others.setdefault(first.path, []).extend(each.path for each in others)

    def _follow(self, path: bytes, target: bytes) -> None:
        try:
            mode = os.stat(target).st_mode  # noqa: PTH116
        except OSError as error:
            if error.errno in _NOWHERE:
                return
            error.filename = os.fsdecode(target)  # for messages
            raise  # what it leads to is not left out
        if modes.S_ISREG(mode):
            self._file_links.append((path, target))
        elif modes.S_ISDIR(mode) and not self._root.startswith(target.rstrip(b"/") + b"/"):
            self._descend(target, path + b"/")

    def _descend(self, folder: bytes, path: bytes) -> None:
        below = [(folder, path)]
        while below:
            folder, path = below.pop()
            if (name := self._text(path)) is None:
                continue
            if folder in self._visited:
                self.tree._folders.append((self._visited[folder].decode(), name))
                continue
            self._visited[folder] = path
            below += self._scan(folder, path)

    def _scan(self, folder: bytes, path: bytes) -> list[tuple[bytes, bytes]]:
        """Add the files of a folder. Returns the folders in it."""
        below: list[tuple[bytes, bytes]] = []
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):  # there is none, or it is gone again
            return below
        except OSError as error:
            error.filename = os.fsdecode(folder)  # for messages
            raise
        with entries:
            for entry in entries:
                name = entry.name
                if name.startswith(self._ignored):
                    continue
                if entry.is_symlink():
                    self._links.append((path + name, entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    below.append((entry.path, path + name + b"/"))
                elif entry.is_file(follow_symlinks=False):
                    self._add(path + name, entry)
        return below

    def _add(self, path: bytes, entry: os.DirEntry[bytes]) -> None:
        if (name := self._text(path)) is None:
            return
        with suppress(FileNotFoundError):  # it is gone again
            self._add_stat(name, entry.stat(follow_symlinks=False))

    def _add_target(self, path: bytes, target: bytes) -> None:
        """Add a file by the name of a link, if it has no other name."""
        if (name := self._text(path)) is None:
            return
        first = self._targets.setdefault(target, self._listed(target) or name)
        with suppress(FileNotFoundError):
            found = os.stat(target)  # noqa: PTH116
            if first == name or found.st_nlink > 1:
                self._add_stat(name, found)
            else:
                self.tree._others.setdefault(first, []).append(name)

    def _listed(self, target: bytes) -> str | None:
        """The name of a file that is listed without a link to it."""
        folder, name = os.path.split(target)
        if folder not in self._visited or name.startswith(self._ignored):
            return None
        with suppress(UnicodeDecodeError):
            return (self._visited[folder] + name).decode()
        return None

    def _add_stat(self, name: str, found: os.stat_result) -> None:
        stat = stat_of(name, found)
        if found.st_nlink == 1:
            self.tree.files.append(stat)
        else:
            self._linked.setdefault((found.st_dev, found.st_ino), []).append(stat)

    def _text(self, path: bytes) -> str | None:
        """The path as text. Notes a path that is none."""
        try:
            return path.decode()
        except UnicodeDecodeError:
            self.tree.unnamed.append(path.decode("utf-8", "backslashreplace"))
            return None
