"""Members of a contract, found by their names.

A member is a module of one of Headgate's packages, or an entry point of another installed package.
Its group is ``headgate.`` and the last part of the name of Headgate's package, for example for
``headgate.flow.gold.measures``::

    [project.entry-points."headgate.measures"]
    median = "ours.median:MEMBER"
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_ATTRIBUTE = "MEMBER"


class Registry(Generic[T]):
    """The members of ``contract`` in a package: the attribute ``MEMBER`` of each module that has
    one, and the package's entry points."""

    def __init__(self, package: str, contract: type[Any]) -> None:
        self._package, self._contract = package, contract
        self._group = f"headgate.{package.rpartition('.')[2]}"

    def get(self, name: str) -> T | None:
        """The member of a name; None if there is none. Raises TypeError if the object with this
        name does not implement the contract."""
        found = _of_headgate(self._package, name)
        if found is None:
            found = next((e.load() for e in _plugged_in(self._group) if e.name == name), None)
        if found is not None and not isinstance(found, self._contract):
            raise TypeError(f"{self._package}: {name} is no {self._contract.__name__}: {found!r}")
        return cast(T, found)

    def __getitem__(self, name: str) -> T:
        """Raises KeyError if there is none."""
        if (found := self.get(name)) is None:
            raise KeyError(f"{self._package}.{name}")
        return found

    def names(self) -> tuple[str, ...]:
        """The names: first those of Headgate, then those of entry points, each in alphabetical
        order."""
        own = _names_of_headgate(self._package)
        return (*own, *sorted(e.name for e in _plugged_in(self._group) if e.name not in own))


# What is installed does not change while a process runs.
@cache
def _names_of_headgate(package: str) -> tuple[str, ...]:
    modules = (module.name for module in iter_modules(import_module(package).__path__))
    return tuple(sorted(name for name in modules if _of_headgate(package, name) is not None))


@cache
def _of_headgate(package: str, name: str) -> object | None:
    if not name.isidentifier() or find_spec(f"{package}.{name}") is None:
        return None
    return getattr(import_module(f"{package}.{name}"), _ATTRIBUTE, None)


@cache
def _plugged_in(group: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))
