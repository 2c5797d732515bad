"""From a YAML file of rules to a :class:`Suite`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_condition
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.nearest import nearest
from headgate.declaration.quantities import parse_duration
from headgate.declaration.reading.checked import Field, Report
from headgate.declaration.reading.document import Broken, Entry, Node, Scalar, Sequence, read
from headgate.declaration.reading.document import Mapping as Section
from headgate.declaration.suites.arguments import Argument, chosen, read_argument
from headgate.declaration.suites.model import (
    MOST_RULES,
    ROW_ACTIONS,
    SEVERITIES,
    TABLE_ACTIONS,
    Rule,
    Suite,
)
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.tables import TABLE_EXPECTATIONS

FOLDER = "expectations"
_KEYS = ("id", "expect", "severity", "action")
_ROW_KEYS = (*_KEYS, "above", "row_condition")
Of = Literal["rows", "table"]
"""What the rules of a suite look at: each row of a silver table, or versions of a gold table."""
_ID = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NAME = re.compile(r"expect_[a-z0-9_A-Z]+")
_SHARE = re.compile(r"(\d{1,2}(?:\.\d+)?)\s*%")


class SuiteReading:
    """Reads the suites that a declaration names, from ``texts`` or, without them, from the files
    of a project. Each suite's problems are reported under its own file."""

    def __init__(self, report: Report, project: Path, texts: Mapping[str, str] | None) -> None:
        self._report, self._folder, self._texts = report, project / FOLDER, texts

    def read(self, named: Field, scope: Scope, of: Of) -> Suite | None:
        """The suite that the value of a key names, over the columns of a table; None if there is
        none, which is reported."""
        text = self._text(named)
        if text is None:
            return None
        report = Report(self._file(named.text))
        suite = read_suite(named.text, text, scope, of, report)
        self._report.problems += report.problems
        return suite

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.yml"

    def _text(self, named: Field) -> str | None:
        if self._texts is not None:
            return self._texts.get(named.text, "")
        file = self._file(named.text)
        try:
            return file.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            known = [file.stem for file in self._folder.glob("*.yml")]
            guess = nearest(named.text, known)
            self._report.add(named.line, named.path, f"there is no suite {file}", guess)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            self._report.add(named.line, named.path, f"{file} cannot be read: {reason}")
        return None


def read_suite(name: str, text: str, scope: Scope, of: Of, report: Report) -> Suite:
    """The suite of a table whose columns are ``scope``. Problems are reported; the suite is then
    never used."""
    node, faults = read(text)
    for fault in faults:
        report.add(fault.line, fault.path, fault.message)
    if node is None:
        return Suite(name, (), text=text)
    entries = _entries(node, of, report)
    rules = [
        rule
        for index, item in enumerate(_items(entries, node.line, report))
        if (rule := _rule(item, f"{FOLDER}[{index}]", scope, of, report)) is not None
    ]
    if len(rules) > MOST_RULES:
        report.add(1, FOLDER, f"has {len(rules)} rules; a suite has at most {MOST_RULES}")
    for index, rule in enumerate(rules):
        if rule.id in [before.id for before in rules[:index]]:
            report.add(1, FOLDER, f"two rules have the id {rule.id!r}")
    every, on_final = _schedule(entries, report)
    return Suite(name, tuple(rules), every, on_final, text)


def _entries(node: Node, of: Of, report: Report) -> Mapping[str, Entry]:
    known = (FOLDER,) if of == "rows" else (FOLDER, "every", "on")
    entries = {entry.key: entry for entry in node.entries} if isinstance(node, Section) else {}
    for key, entry in entries.items():
        if key not in known:
            report.add(entry.line, key, "unknown key", nearest(key, known))
    if FOLDER not in entries and not isinstance(node, Broken):
        report.add(node.line, "", f"must be a map with the key {FOLDER!r}")
    return {key: entry for key, entry in entries.items() if key in known}


def _items(entries: Mapping[str, Entry], line: int, report: Report) -> tuple[Node, ...]:
    entry = entries.get(FOLDER)
    if entry is None or isinstance(entry.node, Broken):
        return ()
    if isinstance(entry.node, Sequence) and entry.node.items:
        return entry.node.items
    report.add(entry.line, FOLDER, "must be a list of rules")
    return ()


def _schedule(entries: Mapping[str, Entry], report: Report) -> tuple[timedelta, bool]:
    """How often the suite of a gold table is validated."""
    every, on = timedelta(0), entries.get("on")
    if (entry := entries.get("every")) is not None:
        try:
            every = parse_duration(str(getattr(entry.node, "text", "")))
        except Invalid as error:
            report.add(entry.line, "every", error.message, error.nearest)
    if on is not None and getattr(on.node, "text", "") != "final":
        report.add(on.line, "on", "must be final, or be left out", "final")
    return every, on is not None


def _rule(node: Node, path: str, scope: Scope, of: Of, report: Report) -> Rule | None:
    if not isinstance(node, Section):
        if not isinstance(node, Broken):
            report.add(node.line, path, "must be a rule: a map with the keys id and expect")
        return None
    reader = _RuleReader if of == "rows" else _TableRuleReader
    return reader(node, path, scope, report).read()


class _RuleReader:
    """Reads one rule about rows, and reports all that is wrong with it."""

    keys = _ROW_KEYS
    actions = ROW_ACTIONS

    def __init__(self, node: Section, path: str, scope: Scope, report: Report) -> None:
        self._node, self._scope, self._report = node, scope, report
        self._entries = {entry.key: entry for entry in node.entries}
        self._path = path
        self._wrong = False

    def read(self) -> Rule | None:
        id_ = self._text("id", required=True)
        if id_ is not None and not _ID.fullmatch(id_):
            message = f"{id_!r} is not an id: lower-case letters, digits and underscores"
            self._say(self._entries["id"], message)
        expect = self._text("expect", required=True)
        arguments: dict[str, Any] = {}
        condition = None
        if expect is not None and _NAME.fullmatch(expect):
            arguments, condition = self._expectation(expect)
        elif expect is not None:
            self._only(self.keys)
            condition = self._condition(self._entries["expect"])
        if "row_condition" in self._entries:
            checked = self._condition(self._entries["row_condition"])
            if condition is not None and checked is not None:
                condition = f"not coalesce({checked}, false) or {condition}"
        severity = self._choice("severity", SEVERITIES)
        action = self._choice("action", self.actions)
        above = self._above(action)
        if self._wrong or id_ is None or expect is None or condition is None:
            return None
        return Rule(
            id=id_,
            expectation=expect if _NAME.fullmatch(expect) else None,
            arguments=arguments,
            condition=f"coalesce({condition}, true)" if condition else "",
            severity=severity,  # type: ignore[arg-type]
            action=action,  # type: ignore[arg-type]
            above=above,
        )

    def _expectation(self, name: str) -> tuple[dict[str, Any], str | None]:
        """The arguments that an expectation is given, and its condition."""
        expectation = ROW_EXPECTATIONS.get(name)
        if expectation is None:
            about = (
                " rows; it is for the suites of gold tables"
                if name in TABLE_EXPECTATIONS
                else " rows"
            )
            guess = None if name in TABLE_EXPECTATIONS else nearest(name, ROW_EXPECTATIONS)
            self._say(self._entries["expect"], f"{name} is not supported for{about}", guess)
            return {}, None
        arguments = self._arguments(expectation.arguments)
        if self._wrong:
            return arguments, None
        try:
            condition = expectation.condition(arguments, self._scope)
            return arguments, f"({parse_condition(condition, self._scope).text})"
        except Invalid as error:
            self._say(self._entries["expect"], error.message, error.nearest)
        return arguments, None

    def _arguments(self, known: tuple[Argument, ...]) -> dict[str, Any]:
        self._only((*self.keys, *(argument.name for argument in known)))
        arguments: dict[str, Any] = {}
        for argument in known:
            entry = self._entries.get(argument.name)
            if entry is None and argument.required:
                self._missing(argument.name)
            elif entry is not None:
                try:
                    arguments[argument.name] = read_argument(entry.node, argument, self._scope)
                except Invalid as error:
                    self._say(entry, error.message, error.nearest)
                except Unresolved:
                    self._wrong = True
        return arguments

    def _condition(self, entry: Entry) -> str | None:
        """An SQL condition in parentheses."""
        try:
            text = self._scalar(entry)
            return None if text is None else f"({parse_condition(text, self._scope).text})"
        except Invalid as error:
            for each in (error, *error.others):
                self._say(entry, each.message, each.nearest)
        except Unresolved:
            self._wrong = True
        return None

    def _above(self, action: str) -> float | None:
        entry = self._entries.get("above")
        if entry is None:
            if action == "stop":
                self._missing("above")
            return None
        text = self._scalar(entry)
        if action != "stop":
            self._say(entry, "is for the action stop alone")
        if text is None:
            return None
        found = _SHARE.fullmatch(text)
        if found is None:
            self._say(entry, f"must be a share of a batch's rows below 100 %, not {text!r}", "20 %")
            return None
        return float(found[1]) / 100

    def _choice(self, name: str, choices: tuple[str, ...]) -> str:
        text = self._text(name)
        if text is None:
            return choices[0]
        try:
            return chosen(text, choices)
        except Invalid as error:
            self._say(self._entries[name], error.message, error.nearest)
            return choices[0]

    def _text(self, name: str, *, required: bool = False) -> str | None:
        entry = self._entries.get(name)
        if entry is not None:
            return self._scalar(entry)
        if required:
            self._missing(name)
        return None

    def _scalar(self, entry: Entry) -> str | None:
        if isinstance(entry.node, Scalar) and entry.node.value is not None:
            return entry.node.text
        if not isinstance(entry.node, Broken):
            self._say(entry, "must be one value")
        self._wrong = True
        return None

    def _only(self, known: tuple[str, ...]) -> None:
        for entry in self._node.entries:
            if entry.key not in known:
                self._say(entry, _REFUSED.get(entry.key, "unknown key"), nearest(entry.key, known))

    def _missing(self, name: str) -> None:
        self._wrong = True
        self._report.add(self._node.line, self._path, f"the key {name!r} is missing")

    def _say(self, entry: Entry, message: str, guess: str | None = None) -> None:
        self._wrong = True
        self._report.add(entry.line, f"{self._path}.{entry.key}", message, guess)


class _TableRuleReader(_RuleReader):
    """Reads one rule about versions of a gold table."""

    keys = _KEYS
    actions = TABLE_ACTIONS

    def _expectation(self, name: str) -> tuple[dict[str, Any], str | None]:
        known = TABLE_EXPECTATIONS.get(name)
        if known is None:
            guess = nearest(name, TABLE_EXPECTATIONS)
            self._say(self._entries["expect"], f"{name} is not supported for gold tables", guess)
            return {}, None
        arguments = self._arguments(known)
        ends = {"min_value", "max_value"}
        if not self._wrong and ends <= {a.name for a in known} and not ends & arguments.keys():
            self._say(self._entries["expect"], "needs min_value or max_value")
        return arguments, ""


_REFUSED: Mapping[str, str] = {
    "mostly": "is not for rows, each of which meets a rule or not; to stop the stream if many rows "
    "break it, write action: stop and above: 20 %",
    "condition_parser": "is not needed: row_condition is Spark SQL",
}
