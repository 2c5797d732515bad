"""The parts of ``docs/declaration.md`` and ``docs/quality.md`` that the code determines, and the
schema for editors.

``python -m headgate.declaration.reference.page`` in a checkout generates them from the tables that
the loader uses. A test fails if they are out of date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import OPERATORS
from headgate.declaration.expressions.functions import REFUSED_FOR, Parameter, functions
from headgate.declaration.expressions.measure import usage
from headgate.declaration.keys.key import Key
from headgate.declaration.keys.pipeline import pipeline_key
from headgate.declaration.quantities import format_duration, format_size
from headgate.declaration.reference.schema import json_text
from headgate.declaration.suites.arguments import RuleArgument
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.versions import TABLE_EXPECTATIONS
from headgate.declaration.types import DECLARED


def expectations() -> dict[str, str]:
    """The tables of the expectations that the code supports: for rows, and for versions."""
    rows = {name: row.arguments for name, row in ROW_EXPECTATIONS.items()}
    versions = {n: known for n, known in TABLE_EXPECTATIONS.items() if n not in rows}
    return {"rows": "\n".join(_table(rows)), "versions": "\n".join(_table(versions))}


def _table(expectations: Mapping[str, Sequence[RuleArgument]]) -> Iterator[str]:
    yield "| Expectation | Arguments |\n|---|---|"
    for name, arguments in expectations.items():
        yield f"| `{name}` | {_arguments(arguments)} |"


def _arguments(arguments: Sequence[RuleArgument]) -> str:
    return ", ".join(map(_rule_argument, arguments))


def _rule_argument(argument: RuleArgument) -> str:
    name = f"**`{argument.name}`**" if argument.required else f"`{argument.name}`"
    if argument.choices:
        return f"{name} ({', '.join(f'`{choice}`' for choice in argument.choices)})"
    return f"{name} ({argument.kind.doc})"


DOCUMENT = Path("docs/declaration.md")
QUALITY = Path("docs/quality.md")
SCHEMA = Path("pipelines/examples/headgate.schema.json")
EXAMPLE = Path("pipelines/examples/auctions.yml")
_MARKED = re.compile(
    r"(<!-- (\w+)\. Written by: [^\n]*?-->(\n?)).*?(<!-- end of \2 -->)", re.DOTALL
)

_VALUES = {
    "section": "a map of keys",
    "names": "a list of columns",
    "paths": "a list of columns",
    "groups": "a list of columns, or a map of expressions",
    "pairs": "a list of columns, or a map of columns",
    "text": "text",
    "name": "a name",
    "column": "a column",
    "path": "a column",
    "field": "text",
    "boolean": "`true` or `false`",
    "integer": "a whole number",
    "size": "a size",
    "duration": "a duration",
    "delimiter": 'a character, but not `"` or a line end',
    "share": "a share, such as `5 %`",
    "type": "a type",
    "expression": "an expression",
    "servers": "`host:port, …`",
    "topic": "the name of a topic",
    "pattern": "a regular expression",
    "start": "`earliest`, `latest`, a time or offsets",
    "options": "a map of client properties",
    "headers": "a map of texts",
}

_FUNCTION_RESULTS = {
    "=1": "type of the first argument",
    "same": "the common type of its arguments",
    "round": "type of the argument; decimals are narrowed",
    "ceil": "bigint; for a decimal, decimal",
    "remainder": "as %",
    "shift": "int or bigint",
    "element": "an element",
    "part": "an element or a value",
    "keys": "the array of the keys",
    "values": "the array of the values",
    "lambdas": "the array of what the lambda gives",
    "lambda": "what the lambda gives",
    "array<string>": "`array<string>`",
}
_ARGUMENTS = {
    "integral": "whole number",
    "time!": "time",
    "timestamp!": "timestamp",
    "time_or_string": "time or string",
    "scalar": "value",
    "same": "value",
    "alike": "value",
    "member": "element",
    "array_or_map": "array or map",
    "texts": "array of strings",
    "plain": "array",
    "sortable": "array",
    "place": "position or 'key'",
    "flag": "true or false",
    "any": "value",
    "format": "'pattern'",
    "parse": "'pattern'",
    "regex": "'regex'",
    "short": "'16 characters'",
    "replacement": "'16 characters'",
    "path": "'$.a.b[0]'",
    "key": "'key'",
    "zone": "'zone'",
}


def with_tables(page: str, made: Mapping[str, str]) -> str:
    """The page with each text of ``made`` between the markers of its name. Raises ValueError unless
    the page has the markers of every text, once, and no others."""
    names = [found[2] for found in _MARKED.finditer(page)]
    if sorted(names) != sorted(made):
        raise ValueError(f"the page has markers of {names}, but needs those of {list(made)}")
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[3]}{found[4]}", page)


def reference(example: str) -> dict[str, str]:
    """The generated parts of the reference. ``example`` is the text of a declaration."""
    limits = filter(None, (OPERATORS[name].limits for name in OPERATORS.names()))
    return {
        "example": f"```yaml\n{example.rstrip()}\n```",
        "keys": "\n".join(_sections(pipeline_key(), "")).rstrip(),
        "types": ", ".join(f"`{name}`" for name in DECLARED),
        "functions": "\n".join(_functions()),
        "measures": "\n".join(_measures()),
        "limits": "\n".join(limits),
    }


def _sections(key: Key, path: str) -> Iterator[str]:
    """A heading and a table of keys for a section, then the same for the sections inside it."""
    name = f"`{path}`" if path else "The file"
    yield f"### {name}\n\n{key.doc}\n"
    yield "| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |"
    for child in key.children:
        if not child.comes_next:
            yield f"| `{child.name}` | {_value(child)} | {_default(child, key)} | {child.doc} |"
    reserved = [child for child in key.children if child.comes_next]
    if reserved:
        names = ", ".join(f"`{child.name}`" for child in reserved)
        yield f"\nNot built yet, and refused: {names}."
        today = [
            f"- Instead of `{child.name}`: {child.today}." for child in reserved if child.today
        ]
        yield "\n".join(["", *today] if today else [])
    for child in key.children:
        if child.refused:
            yield f"\nIn `{child.name}`, Headgate sets these itself:\n"
            yield from (f"- `{name}`: {reason}" for name, reason in child.refused.items())
    yield ""
    for child in key.children:
        inner = f"{path}.{child.name}" if path else child.name
        if child.kind == "section":
            yield from _sections(child, inner)
        elif child.entry and child.entry.children:
            yield from _sections(child.entry, f"{inner}.{child.entry.name}")


def _value(key: Key) -> str:
    if key.kind == "choice":
        return " or ".join(f"`{choice}`" for choice in key.choices)
    if key.kind == "table" and key.entry:
        return f"a map from {key.entry.name} to {_value(key.entry)}"
    if (short := key.child(key.short)) is not None:
        return f"{_value(short)} or a map of keys"
    value = _VALUES[key.kind]
    if key.low is not None and key.kind != "section":
        value += f", {_amount(key, key.low)} to {_amount(key, key.high)}"
    return ", or ".join((value, *(f"`{choice}`" for choice in key.choices)))


def _amount(key: Key, amount: int | timedelta) -> str:
    if isinstance(amount, timedelta):
        return format_duration(amount)
    return format_size(amount) if key.kind == "size" else str(amount)


def _default(key: Key, section: Key) -> str:
    if key.required:
        instead = [f"`{'.'.join(path)}`" for path in section.replacing(key.name)]
        return f"required without {' or '.join(instead)}" if instead else "required"
    if key.name in section.one_of:
        return f"or {' or '.join(f'`{name}`' for name in section.one_of if name != key.name)}"
    return f"`{key.default}`" if key.default is not None else "none"


def _functions() -> Iterator[str]:
    group = ""
    for function in functions().values():
        if function.group != group:
            group = function.group
            yield f"\n| {group} | Result |\n| --- | --- |"
        arguments = ", ".join(map(_argument, function.arguments))
        result = _FUNCTION_RESULTS.get(str(function.result), function.result)
        yield f"| `{function.name}({arguments})` | {result} |"
    yield "\nRefused functions, by reason:\n"
    for reason, names in REFUSED_FOR.items():
        yield f"- {reason}: {', '.join(f'`{name}`' for name in sorted(names.split()))}"


def _argument(argument: Parameter) -> str:
    kind, _, rest = argument.kind.partition(":")
    name = _ARGUMENTS.get(kind, kind)
    if kind == "int":
        name = rest.replace(":", "..")
    elif kind == "oneof":
        name = rest.replace("|", " or ")
    if argument.repeated:
        return f"{name}..."
    return f"[{name}]" if argument.optional else name


def _measures() -> Iterator[str]:
    yield "| Measure | Type | State of an open window |\n| --- | --- | --- |"
    for name in MEASURES.names():
        kind = MEASURES[name]
        rows = f"`{name}(*)`, " if kind.takes_rows else ""
        others = "".join(f", `{other}`" for other in kind.synonyms)
        yield f"| {rows}`{usage(name)}`{others} | {kind.result} | {kind.keeps} |"


def write(root: Path) -> None:
    """Write the generated parts of the pages, and the schema, of the checkout at ``root``."""
    made = {DOCUMENT: reference((root / EXAMPLE).read_text("utf-8")), QUALITY: expectations()}
    for page, parts in made.items():
        text = with_tables((root / page).read_text("utf-8"), parts)
        (root / page).write_text(text, encoding="utf-8")
    (root / SCHEMA).write_text(json_text(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
