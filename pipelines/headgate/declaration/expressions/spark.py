"""Expressions that only Spark's analysis knows: its verdict on their type, and how they run.

Such an expression runs as ``null_on_error(...)`` (``machine/jvm.py``): what fails on a row is null
there. A call that could fill the memory has a guard (``guards.py``). Refused is what is not
deterministic, reads more than its row, or returns rows; and regular expressions that are not
literals, because Java's matcher can overflow its stack.
"""

from __future__ import annotations

import re
from itertools import pairwise

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.analysis import analyse
from headgate.declaration.expressions.guards import bounded
from headgate.declaration.expressions.hardening import check_length, harden
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.literals import check_time_literal
from headgate.declaration.expressions.tokens import Token, string_value
from headgate.declaration.expressions.typed import NotKnown, Reach, Typed
from headgate.declaration.nearest import nearest
from headgate.declaration.patterns import check_regex
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DATE, TIMESTAMP, DataType, Struct, parts

# Spark computes a part that is constant or occurs twice before the expression, outside of
# null_on_error(), and moves null_on_error() into branches. It does not do so with a branch that is
# in a lambda.
_BEFORE = "null_on_error(transform(sequence(0, 0), _i -> if(_i = 0, "
_AFTER = ", null))[0])"
_NO_SUCH_FUNCTION = "loadFunction"
_NO_SUCH_COLUMN = re.compile("^A column, .* with name `([^`]*)` cannot be resolved")
# What to write instead of a type that no column can have.
_INSTEAD = {
    "interval": "extract a part of it, or write timestampdiff(SECOND, from, to)",
    "binary": "write hex(...) or base64(...) around it",
    "timestamp_ntz": "write cast(... as timestamp) around it",
    "variant": "take a value of it with variant_get(..., '$.a', 'string')",
    "map": "the keys of a map are strings; write map_keys(...), or to_json(...)",
}


def analysed(
    text: str, tokens: tuple[Token, ...], scope: Scope, unknown: NotKnown
) -> tuple[Typed, str]:
    """The type of ``text``, and the SQL that runs. Raises Invalid with Spark's reason, or with that
    of ``unknown`` if Spark does not know either what it names, or Unresolved."""
    _check_time_literals(tokens)
    columns = {name: type_ for name, type_ in scope.items() if type_ is not None}
    answer = analyse(text, columns)
    if answer.get("unparsed") or _NO_SUCH_FUNCTION in answer.get("wrong", ""):
        raise Invalid(unknown.message, unknown.nearest, unknown.others)
    if missing := _NO_SUCH_COLUMN.search(answer.get("wrong", "")):
        if missing[1] in scope:
            raise Unresolved(missing[1])
        raise Invalid(f"unknown column {missing[1]!r}", nearest(missing[1], scope))
    for reason in ("wrong", "refused"):
        if reason in answer:
            raise Invalid(str(answer[reason]))
    for regex in answer["regexes"]:
        if regex is None:
            raise Invalid("a regular expression must be a literal text")
        check_regex(regex)
    type_ = _column_type(answer["type"].lower() if "<" not in answer["type"] else answer["type"])
    guarded = bounded(harden(text))
    if guarded != text and "wrong" in (found := analyse(guarded, columns)):
        raise Invalid(f"cannot run with the guards that Headgate adds: {found['wrong']}")
    runs = f"{_BEFORE}{guarded}{_AFTER}"
    read = {token.text.strip("`") for token in tokens if token.kind in ("word", "quoted")}
    structs = [f"{n} {t}" for n, t in sorted(columns.items()) if n in read and _has_struct(t)]
    if structs:
        # A struct's text or hash changes with a field that is added to the struct. So the type is a
        # part of the SQL, and thereby of the table's digest. Spark folds the condition away.
        runs = f"if('{', '.join(structs)}' is null, null, {runs})"
    check_length(runs)
    return Typed(type_, Reach.ANYWHERE), runs


def readable(sql: str) -> str:
    """The SQL of an expression for a person: without what only keeps a failure from Spark."""
    return sql.replace(_BEFORE, "").replace(_AFTER, "") if _BEFORE in sql else sql


def _has_struct(type_: DataType) -> bool:
    return any(isinstance(part, Struct) for part in parts(type_))


def _check_time_literals(tokens: tuple[Token, ...]) -> None:
    """Spark reads ``date 'today'`` as a literal of the day on which it reads it."""
    for word, token in pairwise(tokens):
        kinds = {"date": DATE, "timestamp": TIMESTAMP, "timestamp_ltz": TIMESTAMP}
        kinds |= {"timestamp_ntz": TIMESTAMP}
        type_ = kinds.get(word.lower)
        if type_ and word.kind == "word" and token.kind in ("string", "raw"):
            check_time_literal(type_, string_value(token))


def _column_type(name: str) -> DataType:
    try:
        return parse_type(name)
    except Invalid as error:
        found = (instead for kind, instead in _INSTEAD.items() if name.startswith(kind))
        why = next(found, error.message)
        raise Invalid(f"is of the type {name}, which no column can have: {why}") from None
