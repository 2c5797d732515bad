"""From a YAML file of rules to a :class:`Suite`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_condition, parse_expression
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.typed import shown, with_article
from headgate.declaration.names import chosen, nearest
from headgate.declaration.quantities import parse_duration, parse_share
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.declaration.reading.document import (
    Broken,
    Node,
    YamlEntry,
    YamlMap,
    YamlScalar,
    YamlSequence,
    parse,
    read_file,
)
from headgate.declaration.suites.arguments import ArgumentKind, RuleArgument, named_columns
from headgate.declaration.suites.model import (
    MOST_RULES,
    ROW_ACTIONS,
    SEVERITIES,
    TABLE_ACTIONS,
    Action,
    Rule,
    Suite,
    complete,
)
from headgate.declaration.suites.rows import ABOUT_NULLS, ENDS, ROW_EXPECTATIONS, check_ends
from headgate.declaration.suites.versions import (
    COUNT_NULLS,
    OBSERVE_VALUES,
    OF_NUMBERS,
    SILVER_SUM,
    TABLE_EXPECTATIONS,
    row_condition,
    value_condition,
)
from headgate.declaration.types import BOOLEAN, is_floating, is_nested, is_number


@dataclass(frozen=True)
class RuleSubject:
    """``scope`` has the columns of the table."""

    scope: Scope


@dataclass(frozen=True)
class RowSubject(RuleSubject):
    """Each row of a silver table."""


@dataclass(frozen=True)
class VersionSubject(RuleSubject):
    """Versions of a gold table. ``silver`` has the columns of its silver table. ``adds_up`` are the
    columns of the gold table whose values may be added up. ``pairs_per_row`` is the number of
    results that each silver row is in; None if that differs from row to row. ``reads`` is the gold
    table that the table reads instead of silver, if it is a rollup. ``appends``: the table has no
    measures, and ``silver`` has a struct for each silver table."""

    silver: Scope
    adds_up: Collection[str]
    pairs_per_row: int | None
    reads: str | None = None
    appends: bool = False


_KEYS = ("id", "expect", "severity", "action")
ROW_KEYS = (*_KEYS, "above", "row_condition")
_ID = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NAME = re.compile(r"expect_[a-z0-9_A-Z]+")


class RuleReader:
    """Reads one rule about rows, and reports all that is wrong with it."""

    keys: ClassVar[tuple[str, ...]] = ROW_KEYS
    actions: ClassVar[tuple[Action, ...]] = ROW_ACTIONS
    _silver: Scope = MappingProxyType({})

    def __init__(self, node: YamlMap, path: str, scope: Scope, report: ProblemReport) -> None:
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
        rows: str | None = ""
        if "row_condition" in self._entries:
            rows = self._condition(self._entries["row_condition"])
        severity = self._choice("severity", SEVERITIES)
        action = self._choice("action", self.actions)
        above = self._above(action)
        if self._wrong or id_ is None or expect is None or condition is None or rows is None:
            return None
        is_named = _NAME.fullmatch(expect) is not None
        return Rule(
            id=id_,
            expectation=expect if is_named else None,
            arguments=arguments,
            condition=self._whole(condition, rows, is_named=is_named),
            severity=severity,  # type: ignore[arg-type]
            action=action,  # type: ignore[arg-type]
            above=above,
            sql="" if is_named else expect,
            row_condition=self._written("row_condition"),
        )

    def _whole(self, condition: str, rows: str, *, is_named: bool) -> str:
        return complete(condition, rows)

    def _expectation(self, name: str) -> tuple[dict[str, Any], str | None]:
        """The arguments that an expectation is given, and its condition."""
        expectation = ROW_EXPECTATIONS.get(name)
        if expectation is None:
            about, guess = "", nearest(name, ROW_EXPECTATIONS)
            if name in TABLE_EXPECTATIONS:
                about, guess = "; it is for the suites of gold tables", None
            self._say(self._entries["expect"], f"{name} is not supported for rows{about}", guess)
            return {}, None
        arguments = self._arguments(expectation.arguments)
        if self._wrong:
            return arguments, None
        if name not in ABOUT_NULLS and self._has_nested(arguments):
            return arguments, None
        return arguments, self._stated(lambda: expectation.condition(arguments, self._scope))

    def _stated(self, condition: Callable[[], str]) -> str | None:
        """The condition of an expectation in parentheses; what is wrong with it is reported."""
        try:
            return f"({parse_condition(condition(), self._scope).text})"
        except Invalid as error:
            self._say(self._entries["expect"], error.message, error.nearest)
            return None

    def _has_nested(self, arguments: Mapping[str, Any]) -> bool:
        """Whether an argument names a column whose values have parts, which is then reported."""
        for name in named_columns(arguments):
            type_ = self._scope[name]
            if type_ is not None and is_nested(type_):
                said = f"is for columns of one value each, and {name!r} is {shown(type_)}"
                self._say(self._entries["expect"], f"{said}; write an SQL condition over its parts")
        return self._wrong

    def _arguments(self, known: tuple[RuleArgument, ...]) -> dict[str, Any]:
        self._only((*self.keys, *(argument.name for argument in known)))
        arguments: dict[str, Any] = {}
        for argument in known:
            entry = self._entries.get(argument.name)
            if entry is None and argument.required:
                self._missing(argument.name)
            elif entry is not None:
                try:
                    scope = self._silver if argument.kind is ArgumentKind.SILVER else self._scope
                    arguments[argument.name] = argument.kind.read(entry.node, argument, scope)
                except Invalid as error:
                    self._say(entry, error.message, error.nearest)
                except Unresolved:
                    self._wrong = True
        return arguments

    def _condition(self, entry: YamlEntry) -> str | None:
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
        try:
            return parse_share(text)
        except Invalid:
            self._say(entry, f"must be a share of a batch's rows below 100 %, not {text!r}", "20 %")
            return None

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

    def _scalar(self, entry: YamlEntry) -> str | None:
        if isinstance(entry.node, YamlScalar) and entry.node.value is not None:
            return entry.node.text
        if not isinstance(entry.node, Broken):
            self._say(entry, "must be one value")
        self._wrong = True
        return None

    def _written(self, name: str) -> str:
        """The text of a key that was read already; empty without the key."""
        node = self._entries[name].node if name in self._entries else None
        return node.text if isinstance(node, YamlScalar) else ""

    def _only(self, known: tuple[str, ...]) -> None:
        for entry in self._node.entries:
            if entry.key not in known:
                self._say(entry, _REFUSED.get(entry.key, "unknown key"), nearest(entry.key, known))

    def _missing(self, name: str) -> None:
        self._wrong = True
        self._report.add(self._node.line, self._path, f"the key {name!r} is missing")

    def _say(self, entry: YamlEntry, message: str, guess: str | None = None) -> None:
        self._wrong = True
        self._report.add(entry.line, f"{self._path}.{entry.key}", message, guess)


class TableRuleReader(RuleReader):
    """Reads one rule about versions of a gold table."""

    keys = _KEYS
    actions = TABLE_ACTIONS

    def __init__(
        self, node: YamlMap, path: str, subject: VersionSubject, report: ProblemReport
    ) -> None:
        super().__init__(node, path, subject.scope, report)
        self._subject, self._silver = subject, subject.silver

    def _expectation(self, name: str) -> tuple[dict[str, Any], str | None]:
        known = TABLE_EXPECTATIONS.get(name)
        if known is None:
            guess = nearest(name, TABLE_EXPECTATIONS)
            self._say(self._entries["expect"], f"{name} is not supported for gold tables", guess)
            return {}, None
        arguments = self._arguments(known)
        has_ends = {*ENDS} <= {argument.name for argument in known}
        if not self._wrong and has_ends and not arguments.keys() & {*ENDS}:
            self._say(self._entries["expect"], "needs min_value or max_value")
        if self._wrong or (name not in COUNT_NULLS and self._has_nested(arguments)):
            return arguments, None
        if name in ROW_EXPECTATIONS:
            return arguments, self._stated(lambda: row_condition(name, arguments, self._scope))
        if name == SILVER_SUM:
            self._check_sums(arguments)
        elif name in OBSERVE_VALUES:
            self._stated(lambda: value_condition(arguments, self._scope))
        else:
            self._check_aggregate(name, arguments)
        return arguments, ""

    def _whole(self, condition: str, rows: str, *, is_named: bool) -> str:
        return condition if is_named else complete(condition, rows)

    def _check_aggregate(self, name: str, given: Mapping[str, Any]) -> None:
        type_ = self._scope[given["column"]] if name in OF_NUMBERS else None
        try:
            if type_ is not None and not is_number(type_) and type_ != BOOLEAN:
                what = with_article(type_)
                raise Invalid(f"is for numbers; the column {given['column']!r} is {what}")
            check_ends(given)
        except Invalid as error:
            self._say(self._entries["expect"], error.message)

    def _check_sums(self, given: Mapping[str, Any]) -> None:
        """Reports what prevents a sum over gold from being equal to a sum over silver."""
        column, expect = given["column"], self._entries["expect"]
        if self._subject.appends:
            self._say(expect, "is for tables with measures, which this table does not have")
            return
        if self._subject.reads is not None:
            message = f"is for a table that reads silver; this one reads {self._subject.reads!r}"
            self._say(expect, message)
        elif self._subject.pairs_per_row is None:
            self._say(expect, "needs each silver row to be in the same number of windows")
        if column not in self._subject.adds_up:
            message = f"the values of {column!r} do not add up; sums, counts and columns may"
            self._say(self._entries["column"], message)
            return
        silver = parse_expression(self._written("silver"), self._silver).type
        gold = self._scope[column]
        if gold is not None and not is_number(gold):
            self._say(self._entries["column"], f"must be a number, not {with_article(gold)}")
        elif "tolerance" not in given and any(t and is_floating(t) for t in (gold, silver)):
            self._say(expect, "needs a tolerance: a sum of doubles depends on the order of rows")
        elif float(given.get("tolerance", 0)) < 0:
            self._say(self._entries["tolerance"], "must be 0 or more")


_REFUSED: Mapping[str, str] = {
    "mostly": "is not for rows, each of which meets a rule or not; to stop the stream if many rows "
    "break it, write action: stop and above: 20 %",
    "condition_parser": "is not needed: row_condition is Spark SQL",
}


FOLDER = "expectations"


class SuiteReading:
    """Reads the suites that a declaration names, from ``texts`` or, without them, from the files
    of a project. Each suite's problems are reported under its own file."""

    def __init__(
        self, report: ProblemReport, project: Path, texts: Mapping[str, str] | None
    ) -> None:
        self._report, self._folder, self._texts = report, project / FOLDER, texts

    def read(self, named: Field, subject: RuleSubject) -> Suite | None:
        """The suite that the value of a key names; None if it cannot be read, which is reported."""
        report = ProblemReport(self._file(named.text))
        text = self._text(named, report)
        suite = None if text is None else read_suite(named.text, text, subject, report)
        self._report.problems += report.problems
        return suite

    def _file(self, name: str) -> Path:
        """The file of a suite: beside the declaration, as in an example of an installed package, or
        else in the project."""
        beside = self._report.file.parent / FOLDER / f"{name}.yml"
        return beside if beside.is_file() else self._folder / beside.name

    def _text(self, named: Field, report: ProblemReport) -> str | None:
        if self._texts is not None:
            return self._texts.get(named.text, "")
        try:
            report.file.stat()
        except FileNotFoundError:
            known = [file.stem for file in self._folder.glob("*.yml")]
            guess = nearest(named.text, known)
            self._report.at(named, f"there is no suite {report.file}", guess)
            return None
        except OSError:  # read_file reports it
            pass
        return read_file(report.file, report, "suite")


def read_suite(name: str, text: str, subject: RuleSubject, report: ProblemReport) -> Suite:
    """Problems are reported; the suite is then never used."""
    node = parse(text, report)
    if node is None:
        return Suite(name, (), text=text)
    entries = _entries(node, subject, report)
    rules: dict[str, Rule] = {}
    items = _items(entries, report)
    for index, item in enumerate(items):
        path = f"{FOLDER}[{index}]"
        rule = _rule(item, path, subject, report)
        if rule is not None and rule.id in rules:
            report.add(_line_of_id(item), f"{path}.id", f"two rules have the id {rule.id!r}")
        elif rule is not None:
            rules[rule.id] = rule
    if len(items) > MOST_RULES:
        message = f"has {len(items)} rules; a suite has at most {MOST_RULES}"
        report.add(entries[FOLDER].line, FOLDER, message)
    every, on_final = _schedule(entries, report)
    return Suite(name, tuple(rules.values()), every, on_final, text)


def _entries(node: Node, subject: RuleSubject, report: ProblemReport) -> Mapping[str, YamlEntry]:
    known = (FOLDER, "every", "on") if isinstance(subject, VersionSubject) else (FOLDER,)
    entries = {entry.key: entry for entry in node.entries} if isinstance(node, YamlMap) else {}
    for key, entry in entries.items():
        if key not in known:
            report.add(entry.line, key, "unknown key", nearest(key, known))
    if FOLDER not in entries and not isinstance(node, Broken):
        report.add(node.line, "", f"must be a map with the key {FOLDER!r}")
    return {key: entry for key, entry in entries.items() if key in known}


def _items(entries: Mapping[str, YamlEntry], report: ProblemReport) -> tuple[Node, ...]:
    entry = entries.get(FOLDER)
    if entry is None or isinstance(entry.node, Broken):
        return ()
    if isinstance(entry.node, YamlSequence) and entry.node.items:
        return entry.node.items
    report.add(entry.line, FOLDER, "must be a list of rules")
    return ()


def _schedule(entries: Mapping[str, YamlEntry], report: ProblemReport) -> tuple[timedelta, bool]:
    """How often the suite of a gold table is validated."""
    every, on = entries.get("every"), entries.get("on")
    time = timedelta(0)
    if every is not None and not isinstance(every.node, Broken):
        try:
            time = parse_duration(_text_of(every.node))
        except Invalid as error:
            report.add(every.line, "every", error.message, error.nearest)
    if on is not None and not isinstance(on.node, Broken) and _text_of(on.node) != "final":
        report.add(on.line, "on", "must be final, or be left out", "final")
    return time, on is not None


def _text_of(node: Node) -> str:
    return node.text if isinstance(node, YamlScalar) else ""


def _line_of_id(rule: Node) -> int:
    entries = rule.entries if isinstance(rule, YamlMap) else ()
    return next((entry.line for entry in entries if entry.key == "id"), rule.line)


def _rule(node: Node, path: str, subject: RuleSubject, report: ProblemReport) -> Rule | None:
    if not isinstance(node, YamlMap):
        if not isinstance(node, Broken):
            report.add(node.line, path, "must be a rule: a map with the keys id and expect")
        return None
    if isinstance(subject, VersionSubject):
        return TableRuleReader(node, path, subject, report).read()
    return RuleReader(node, path, subject.scope, report).read()
