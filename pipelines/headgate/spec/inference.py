"""The type of a parsed expression, found the way Spark 4.2 finds it.

A part of an expression is allowed when it has a handler here; everything else (subqueries,
windows, lambdas, stars, aliases, hints) is refused for want of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from headgate.spec import calls, datatypes
from headgate.spec.calls import Operand, Typed
from headgate.spec.errors import Unfit
from headgate.spec.literals import check_literal, check_time_literal
from headgate.spec.nearest import nearest

Scope = Mapping[str, str | None]

_ARITHMETIC: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_ARITHMETIC |= {exp.IntDiv: "div"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
# Longer spans, added again and again, could leave the range of a timestamp.
_SPANS = {"YEAR": 1_000, "MONTH": 12_000, "WEEK": 50_000, "DAY": 366_000, "HOUR": 1_000_000}
_SPANS |= {"MINUTE": 1_000_000, "SECOND": 1_000_000, "MILLISECOND": 1_000_000}
_DATE_PARTS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DOY", "HOUR", "MINUTE")
_PARTS = {"this", "expression", "expressions"}


class Unresolved(Exception):
    """An operand whose own declaration is wrong: reported there, so nothing is said here."""


def infer(node: exp.Expression, scope: Scope) -> Typed:
    """The type of ``node`` over the columns of ``scope``. Raises Unfit, or Unresolved where it
    needs a column whose type is None."""
    return _Inference(scope).type_of(node)


class _Inference:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def type_of(self, node: exp.Expression) -> Typed:
        if node.comments:
            raise Unfit("comments are not allowed inside an expression")
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise Unfit(f"{_describe(node)} is not supported in an expression")
        return handler(self, node)

    def column(self, node: exp.Expression) -> Typed:
        if node.args.get("table") or not isinstance(node.this, exp.Identifier):
            raise Unfit(f"{node.sql()!r} is not a column; nested fields come next")
        name = node.name
        if name not in self._scope:
            reason = calls.refusal(name) if not node.this.quoted else None
            raise Unfit(reason or f"unknown column {name!r}", nearest(name, self._scope))
        type_ = self._scope[name]
        if type_ is None:
            raise Unresolved(name)
        return Typed(type_)

    def literal(self, node: exp.Expression) -> Typed:
        text = str(node.this)
        if isinstance(node, exp.RawString) or node.is_string:
            return Typed("string", constant=True)
        if "e" in text.lower():
            return Typed("double", constant=True)
        return Typed(_number_type(text), constant=True)

    def boolean(self, node: exp.Expression) -> Typed:
        return Typed("boolean", constant=True)

    def null(self, node: exp.Expression) -> Typed:
        return Typed(datatypes.VOID, constant=True)

    def inner(self, node: exp.Expression) -> Typed:
        return self.type_of(node.this)

    def negative(self, node: exp.Expression) -> Typed:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return Typed(_number_type(f"-{node.this.this}"), constant=True)
        return self._number(node.this, "-")

    def logical(self, node: exp.Expression) -> Typed:
        operands = [node.this, node.expression] if node.args.get("expression") else [node.this]
        constant = True
        for operand in operands:
            typed = self.type_of(operand)
            constant = constant and typed.constant
            if typed.type not in ("boolean", datatypes.VOID):
                given = f"{operand.sql('spark')} is a {typed.type}"
                raise Unfit(f"{_word(node)} takes conditions, and {given}")
        return Typed("boolean", constant=constant)

    def comparison(self, node: exp.Expression) -> Typed:
        return self._compare(node.this, node.expression)

    def between(self, node: exp.Expression) -> Typed:
        low = self._compare(node.this, node.args["low"])
        high = self._compare(node.this, node.args["high"])
        return Typed("boolean", constant=low.constant and high.constant)

    def in_list(self, node: exp.Expression) -> Typed:
        if not node.expressions or set(_given(node)) - {"this", "expressions"}:
            raise Unfit("IN takes a list of values in an expression")
        constants = [self._compare(node.this, item).constant for item in node.expressions]
        return Typed("boolean", constant=all(constants))

    def is_condition(self, node: exp.Expression) -> Typed:
        typed = self.type_of(node.this)
        if isinstance(node.expression, exp.Boolean) and typed.type not in ("boolean", "void"):
            raise Unfit(f"IS TRUE takes a condition, not a {typed.type}")
        if not isinstance(node.expression, exp.Null | exp.Boolean):
            raise Unfit("IS takes NULL, TRUE or FALSE")
        return Typed("boolean", constant=typed.constant)

    def like(self, node: exp.Expression) -> Typed:
        self._string(node.this, _word(node))
        text = calls.literal_text(node.expression)
        if text is None:
            raise Unfit(f"the pattern of {_word(node)} must be a literal text")
        if isinstance(node, exp.RegexpLike):
            check_literal("regex", text)
        elif _bad_like(text):
            raise Unfit(f"in the pattern {text!r} a backslash stands before other than % _ \\")
        return Typed("boolean")

    def arithmetic(self, node: exp.Expression) -> Typed:
        if isinstance(node.expression, exp.Interval) and isinstance(node, exp.Add | exp.Sub):
            return self._shifted(node)
        operator = _ARITHMETIC[type(node)]
        left, right = self._number(node.this, operator), self._number(node.expression, operator)
        if datatypes.VOID in (left.type, right.type):
            raise Unfit(f"{operator} with null is always null")
        types = (_operand_type(node.this, left, right), _operand_type(node.expression, right, left))
        type_ = datatypes.arithmetic_type(operator, *types)
        return Typed(type_, constant=left.constant and right.constant)

    def bitwise(self, node: exp.Expression) -> Typed:
        operands = [node.this, node.expression] if node.args.get("expression") else [node.this]
        typed = [self.type_of(operand) for operand in operands]
        if any(t.type not in datatypes.INTEGRALS for t in typed):
            raise Unfit("& | ^ ~ take whole numbers")
        type_ = datatypes.common_type(t.type for t in typed)
        return Typed(type_ or "bigint", constant=all(t.constant for t in typed))

    def pipes(self, node: exp.Expression) -> Typed:
        typed = [self.type_of(node.this), self.type_of(node.expression)]
        if any(t.type.startswith("array<") for t in typed):
            raise Unfit("|| joins texts")
        return Typed("string", constant=all(t.constant for t in typed))

    def case(self, node: exp.Expression) -> Typed:
        results: list[Typed] = []
        for branch in node.args["ifs"]:
            if node.this:
                self._compare(node.this, branch.this)
            elif self.type_of(branch.this).type not in ("boolean", datatypes.VOID):
                raise Unfit(f"WHEN takes a condition, not {branch.this.sql('spark')}")
            results.append(self.type_of(branch.args["true"]))
        if node.args.get("default"):
            results.append(self.type_of(node.args["default"]))
        types = [typed.type for typed in results]
        common = datatypes.common_type(types)
        if common is None:
            raise Unfit(f"CASE mixes {' and '.join(dict.fromkeys(types))}; cast one of them")
        _check_widened(results)
        return Typed(common, bounded=all(typed.bounded for typed in results))

    def cast(self, node: exp.Expression) -> Typed:
        if set(_given(node)) - {"this", "to", "safe"}:
            raise Unfit("this form of CAST is not supported")
        target = datatypes.parse_type(node.args["to"].sql("spark"))
        text = calls.literal_text(node.this)
        if datatypes.is_time(target) and text is not None:
            check_time_literal(target, text)
            return Typed(target, constant=True)
        typed = self.type_of(node.this)
        if datatypes.is_time(target) and typed.constant and typed.type == "string":
            raise Unfit(f"a constant {target} is written as a literal: {target} '2026-01-31'")
        if not _castable(typed, target):
            raise Unfit(f"a {typed.type} cannot be cast to {target}")
        bounded = not datatypes.is_time(target) or (datatypes.is_time(typed.type) and typed.bounded)
        return Typed(target, bounded, typed.constant)

    def extract(self, node: exp.Expression) -> Typed:
        part = node.name.upper()
        if part not in _DATE_PARTS:
            raise Unfit(f"EXTRACT cannot give {part.lower()}", nearest(part, _DATE_PARTS))
        typed = self.type_of(node.expression)
        wanted = ("timestamp",) if part in ("HOUR", "MINUTE") else ("timestamp", "date")
        if typed.type not in wanted:
            raise Unfit(f"EXTRACT takes a {' or '.join(wanted)}, not a {typed.type}")
        return Typed("int", constant=typed.constant)

    def element(self, node: exp.Expression) -> Typed:
        typed = self.type_of(node.this)
        if not typed.type.startswith("array<") or len(node.expressions) != 1:
            raise Unfit(f"[ ] takes an array, not a {typed.type}")
        if self.type_of(node.expressions[0]).type not in datatypes.INTEGRALS:
            raise Unfit("the position in [ ] must be a whole number")
        return Typed(typed.type[6:-1], constant=typed.constant)

    def interval(self, node: exp.Expression) -> Typed:
        raise Unfit("an interval can only be added to or taken from a date or a timestamp")

    def call(self, node: exp.Expression) -> Typed:
        function = calls.find_function(str(node.this))
        arguments = calls.spread(function, len(node.expressions))
        operands: list[Operand] = []
        for argument, given in zip(arguments, node.expressions, strict=True):
            if calls.check_configuring(function, argument, given):
                typed = Typed("int", constant=True)
            else:
                typed = self.type_of(given)
                calls.check_operand(function, argument, typed)
            operands.append(Operand(given, typed))
        if any(argument.kind == "same" for argument in arguments):
            _check_widened([operand.typed for operand in operands])
        return calls.result(function, arguments, tuple(operands))

    def _shifted(self, node: exp.Expression) -> Typed:
        typed = self.type_of(node.this)
        unit = _check_interval(node.expression)
        if not datatypes.is_time(typed.type):
            raise Unfit(f"an interval can be added to a date or a timestamp, not to a {typed.type}")
        if not typed.bounded:
            raise Unfit(
                "an interval cannot be added to a time made from text or numbers, which could "
                "overflow; make it a silver column, and use it in gold"
            )
        if typed.type == "date" and unit not in ("YEAR", "MONTH", "WEEK", "DAY"):
            raise Unfit("to add hours or less to a date, write cast(... as timestamp) first")
        return typed

    def _number(self, node: exp.Expression, operator: str) -> Typed:
        typed = self.type_of(node)
        if datatypes.is_number(typed.type) or typed.type == datatypes.VOID:
            return typed
        hint = "cast it to a number"
        if datatypes.is_time(typed.type):
            hint = "use date_add, datediff, timestampdiff or an interval"
        raise Unfit(f"{operator} takes numbers, and {node.sql('spark')} is a {typed.type}; {hint}")

    def _string(self, node: exp.Expression, word: str) -> None:
        typed = self.type_of(node)
        if typed.type not in ("string", datatypes.VOID):
            raise Unfit(f"{word} takes a string, not a {typed.type}; write cast(... as string)")

    def _compare(self, left: exp.Expression, right: exp.Expression) -> Typed:
        first, second = self.type_of(left), self.type_of(right)
        for node, other in ((left, second), (right, first)):
            text = calls.literal_text(node)
            if datatypes.is_time(other.type) and text is not None:
                check_time_literal(other.type, text)
                return Typed("boolean", constant=other.constant)
        if not datatypes.comparable(first.type, second.type):
            raise Unfit(f"compares a {first.type} with a {second.type}; cast one of them")
        _check_widened([first, second])
        return Typed("boolean", constant=first.constant and second.constant)


def _check_widened(operands: list[Typed]) -> None:
    """A date that meets a timestamp is widened, which an extreme date would not survive."""
    types = {typed.type for typed in operands}
    if {"date", "timestamp"} <= types and not all(typed.bounded for typed in operands):
        raise Unfit("mixes a date made from text with a timestamp; cast both to date")


def _check_interval(node: exp.Expression) -> str:
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    if name not in _SPANS or not number.lstrip("-").isdecimal():
        raise Unfit("an interval is a whole number and one unit, such as: interval 1 hour")
    if abs(int(number)) > _SPANS[name]:
        raise Unfit(f"an interval has at most {_SPANS[name]} {name.lower()}s")
    return name


def _castable(typed: Typed, target: str) -> bool:
    source = typed.type
    if source.startswith("array<"):
        return False
    if source in ("string", datatypes.VOID, target) or target == "string":
        return True
    if datatypes.is_time(source) and datatypes.is_time(target):
        return typed.bounded or target == "date"
    if datatypes.is_number(source) and target != "date":
        return True
    if source == "boolean":
        return datatypes.is_number(target)
    return source == "timestamp" and datatypes.is_number(target)


def _operand_type(node: exp.Expression, typed: Typed, other: Typed) -> str:
    """Beside a decimal, Spark gives an integer literal only the digits it needs."""
    value = calls.literal_integer(node)
    if value is not None and datatypes.is_decimal(other.type):
        return datatypes.decimal(len(str(abs(value))), 0)
    return typed.type


def _number_type(text: str) -> str:
    if text.lstrip("-").isdecimal():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return "int"
        if -(2**63) <= value < 2**63:
            return "bigint"
    whole, _, fraction = text.lstrip("-").partition(".")
    scale = len(fraction)
    precision = max(len(whole.lstrip("0")) + scale, scale, 1)
    if precision > datatypes.MAX_PRECISION:
        raise Unfit(f"the number {text} has more than 38 digits")
    return datatypes.decimal(precision, scale)


def _bad_like(text: str) -> bool:
    escapes = iter(text)
    return any(c == "\\" and next(escapes, "") not in ("%", "_", "\\") for c in escapes)


def _given(node: exp.Expression) -> list[str]:
    return [name for name, value in node.args.items() if value]


def _word(node: exp.Expression) -> str:
    return {"RegexpLike": "RLIKE"}.get(type(node).__name__, type(node).__name__.upper())


def _describe(node: exp.Expression) -> str:
    names: dict[type, str] = {exp.Star: "*", exp.Window: "a window function (OVER)"}
    names |= {exp.Alias: "an alias", exp.Lambda: "a lambda", exp.Subquery: "a subquery"}
    names |= {exp.Select: "a query", exp.Exists: "a subquery", exp.Tuple: "a list"}
    return names.get(type(node), type(node).__name__)


_HANDLERS: dict[type, Callable[[_Inference, exp.Expression], Typed]] = {
    exp.Column: _Inference.column,
    exp.Literal: _Inference.literal,
    exp.RawString: _Inference.literal,
    exp.Boolean: _Inference.boolean,
    exp.Null: _Inference.null,
    exp.Paren: _Inference.inner,
    exp.Neg: _Inference.negative,
    exp.Not: _Inference.logical,
    exp.And: _Inference.logical,
    exp.Or: _Inference.logical,
    **dict.fromkeys(_COMPARISONS, _Inference.comparison),
    exp.Between: _Inference.between,
    exp.In: _Inference.in_list,
    exp.Is: _Inference.is_condition,
    exp.Like: _Inference.like,
    exp.ILike: _Inference.like,
    exp.RegexpLike: _Inference.like,
    **dict.fromkeys(_ARITHMETIC, _Inference.arithmetic),
    **dict.fromkeys(
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), _Inference.bitwise
    ),
    exp.DPipe: _Inference.pipes,
    exp.Case: _Inference.case,
    exp.Cast: _Inference.cast,
    exp.TryCast: _Inference.cast,
    exp.Extract: _Inference.extract,
    exp.Bracket: _Inference.element,
    exp.Interval: _Inference.interval,
    exp.Anonymous: _Inference.call,
}
