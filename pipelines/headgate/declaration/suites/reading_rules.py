"""From one entry of a suite's file to a :class:`Rule`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_condition, parse_expression
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.typed import shown, with_article
from headgate.declaration.nearest import chosen, nearest
from headgate.declaration.quantities import parse_share
from headgate.declaration.reading.checked import Report
from headgate.declaration.reading.document import Broken, Entry, Scalar
from headgate.declaration.reading.document import Mapping as Section
from headgate.declaration.suites.arguments import Argument, ArgumentKind, named_columns
from headgate.declaration.suites.model import (
    ROW_ACTIONS,
    SEVERITIES,
    TABLE_ACTIONS,
    Action,
    Rule,
    complete,
)
from headgate.declaration.suites.rows import ABOUT_NULLS, ENDS, ROW_EXPECTATIONS, check_ends
from headgate.declaration.suites.subject import VersionSubject
from headgate.declaration.suites.tables import (
    COUNT_NULLS,
    OBSERVE_VALUES,
    OF_NUMBERS,
    SILVER_SUM,
    TABLE_EXPECTATIONS,
)
from headgate.declaration.suites.versions import row_condition, value_condition
from headgate.declaration.types import BOOLEAN, is_floating, is_nested, is_number

_KEYS = ("id", "expect", "severity", "action")
ROW_KEYS = (*_KEYS, "above", "row_condition")
_ID = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NAME = re.compile(r"expect_[a-z0-9_A-Z]+")


class RuleReader:
    """Reads one rule about rows, and reports all that is wrong with it."""

    keys: ClassVar[tuple[str, ...]] = ROW_KEYS
    actions: ClassVar[tuple[Action, ...]] = ROW_ACTIONS
    _silver: Scope = MappingProxyType({})

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

    def _arguments(self, known: tuple[Argument, ...]) -> dict[str, Any]:
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

    def _scalar(self, entry: Entry) -> str | None:
        if isinstance(entry.node, Scalar) and entry.node.value is not None:
            return entry.node.text
        if not isinstance(entry.node, Broken):
            self._say(entry, "must be one value")
        self._wrong = True
        return None

    def _written(self, name: str) -> str:
        """The text of a key that was read already; empty without the key."""
        node = self._entries[name].node if name in self._entries else None
        return node.text if isinstance(node, Scalar) else ""

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


class TableRuleReader(RuleReader):
    """Reads one rule about versions of a gold table."""

    keys = _KEYS
    actions = TABLE_ACTIONS

    def __init__(self, node: Section, path: str, subject: VersionSubject, report: Report) -> None:
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
        if self._subject.pairs_per_row is None:
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
