"""From a YAML file of rules to a :class:`Suite`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from headgate.declaration.errors import Invalid
from headgate.declaration.nearest import nearest
from headgate.declaration.quantities import parse_duration
from headgate.declaration.reading.checked import Field, Report
from headgate.declaration.reading.document import Broken, Entry, Node, Scalar, Sequence
from headgate.declaration.reading.document import Mapping as Section
from headgate.declaration.reading.files import parse, read_file
from headgate.declaration.suites.model import (
    MOST_RULES,
    Rule,
    Suite,
)
from headgate.declaration.suites.reading_rules import RuleReader, TableRuleReader
from headgate.declaration.suites.subject import Subject, VersionSubject

FOLDER = "expectations"


class SuiteReading:
    """Reads the suites that a declaration names, from ``texts`` or, without them, from the files
    of a project. Each suite's problems are reported under its own file."""

    def __init__(self, report: Report, project: Path, texts: Mapping[str, str] | None) -> None:
        self._report, self._folder, self._texts = report, project / FOLDER, texts

    def read(self, named: Field, subject: Subject) -> Suite | None:
        """The suite that the value of a key names; None if it cannot be read, which is reported."""
        report = Report(self._file(named.text))
        text = self._text(named, report)
        suite = None if text is None else read_suite(named.text, text, subject, report)
        self._report.problems += report.problems
        return suite

    def _file(self, name: str) -> Path:
        """The file of a suite: beside the declaration, as in an example of an installed package, or
        else in the project."""
        beside = self._report.file.parent / FOLDER / f"{name}.yml"
        return beside if beside.is_file() else self._folder / beside.name

    def _text(self, named: Field, report: Report) -> str | None:
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


def read_suite(name: str, text: str, subject: Subject, report: Report) -> Suite:
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


def _entries(node: Node, subject: Subject, report: Report) -> Mapping[str, Entry]:
    known = (FOLDER, "every", "on") if isinstance(subject, VersionSubject) else (FOLDER,)
    entries = {entry.key: entry for entry in node.entries} if isinstance(node, Section) else {}
    for key, entry in entries.items():
        if key not in known:
            report.add(entry.line, key, "unknown key", nearest(key, known))
    if FOLDER not in entries and not isinstance(node, Broken):
        report.add(node.line, "", f"must be a map with the key {FOLDER!r}")
    return {key: entry for key, entry in entries.items() if key in known}


def _items(entries: Mapping[str, Entry], report: Report) -> tuple[Node, ...]:
    entry = entries.get(FOLDER)
    if entry is None or isinstance(entry.node, Broken):
        return ()
    if isinstance(entry.node, Sequence) and entry.node.items:
        return entry.node.items
    report.add(entry.line, FOLDER, "must be a list of rules")
    return ()


def _schedule(entries: Mapping[str, Entry], report: Report) -> tuple[timedelta, bool]:
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
    return node.text if isinstance(node, Scalar) else ""


def _line_of_id(rule: Node) -> int:
    entries = rule.entries if isinstance(rule, Section) else ()
    return next((entry.line for entry in entries if entry.key == "id"), rule.line)


def _rule(node: Node, path: str, subject: Subject, report: Report) -> Rule | None:
    if not isinstance(node, Section):
        if not isinstance(node, Broken):
            report.add(node.line, path, "must be a rule: a map with the keys id and expect")
        return None
    if isinstance(subject, VersionSubject):
        return TableRuleReader(node, path, subject, report).read()
    return RuleReader(node, path, subject.scope, report).read()
