"""What Spark's analyzer (Catalyst) finds about an SQL expression over columns of known types.

Catalyst runs without a session: its start takes about two seconds. Like ``machine/jvm.py``, this
module uses internals of Spark and py4j that any version may change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.java_gateway import launch_gateway

_CATALYST = "org.apache.spark.sql.catalyst."
_EXPRESSIONS = f"{_CATALYST}expressions."
# The settings of the driver's session that change types or names.
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
}
# Classes of expressions that are refused, by what they do.
_REFUSED = {
    f"{_EXPRESSIONS}Generator": "returns several rows for one",
    f"{_EXPRESSIONS}aggregate.AggregateFunction": "is an aggregate, which belongs under measures",
    f"{_EXPRESSIONS}RaiseError": "would stop the pipeline",
    # Which values a full sketch drops is random.
    f"{_EXPRESSIONS}KllSketchMergeBase": "is not deterministic",
    # Its writer keeps what it has written of a row that fails.
    f"{_EXPRESSIONS}StructsToXml": "would write parts of other rows; write to_json(...)",
    **dict.fromkeys(
        (
            f"{_EXPRESSIONS}{name}"
            for name in (
                *("CurrentDate", "CurrentTime", "CurrentTimestampLike", "LocalTimestamp"),
                *("CurrentDatabase", "CurrentCatalog", "CurrentUser", "CurrentTimeZone"),
                *("CurrentPath", "SparkVersion"),
            )
        ),
        "is not deterministic",
    ),
    **dict.fromkeys(
        (f"{_EXPRESSIONS}InputFile{name}" for name in ("Name", "BlockStart", "BlockLength")),
        "reads where the data came from",
    ),
}
# Which children of an expression are regular expressions.
_REGEXES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("RLike", "StringSplit", "RegExpReplace", "RegExpExtract"), (1,)),
    **dict.fromkeys(("RegExpExtractAll", "RegExpInStr", "RegExpCount", "RegExpSubStr"), (1,)),
    "StringToMap": (1, 2),
    "ParseUrl": (2,),
}
# The second child of these decides how deeply, or how often, a text is searched.
_PATTERNS = {"Like": "pattern", "ILike": "pattern", "GetJsonObject": "path"}
_READS_TEXT = ("ParseToTimestamp", "ParseToDate")
_READS_DOCUMENTS = ("JsonToStructs", "CsvToStructs", "XmlToStructs", "VariantGet")
_GROWING = ("string", "array", "map", "binary", "variant")
# The types of parts that are read as text when they become times.
_TEXT = re.compile("string|variant")


class Analysis(TypedDict, total=False):
    """``type``: the type as Spark prints it. ``regexes``: the regular expressions that it matches
    with; None for one that is not a literal. Otherwise ``refused``: why the expression is not
    allowed; or ``wrong``: Spark's message, where ``unparsed`` is whether Spark cannot parse it."""

    type: str
    regexes: list[str | None]
    refused: str
    wrong: str
    unparsed: bool


@dataclass(frozen=True)
class _Node:
    """A node of an expression. Each question to the JVM takes part of a millisecond, so the name of
    its class and its children are asked for once."""

    java: Any
    name: str
    children: tuple[_Node, ...]

    @classmethod
    def of(cls, java: Any) -> _Node:
        name = str(java.getClass().getSimpleName())
        inner = [*_each(java.children()), *_replacement(java)]
        return cls(java, name, tuple(map(cls.of, inner)))

    def __iter__(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child

    @property
    def type(self) -> str:
        return str(self.java.dataType().catalogString())


class Analyzer:
    """Starts a JVM, which ends with this process. Raises pyspark's error if Java does not start."""

    def __init__(self) -> None:
        start: Any = launch_gateway
        view = start().jvm
        self._view: Any = view
        self._loader = view.java.lang.Thread.currentThread().getContextClassLoader()
        sql = view.org.apache.spark.sql
        settings = sql.internal.SQLConf.get()
        for name, value in _SETTINGS.items():
            settings.setConfString(name, value)
        self._types, self._attributes = sql.types, sql.catalyst.types.DataTypeUtils.toAttributes
        self._alias = sql.catalyst.analysis.UnresolvedAlias
        plans = sql.catalyst.plans.logical
        self._relation, self._project = plans.LocalRelation, plans.Project
        self._parser = self._object(f"{_CATALYST}parser.CatalystSqlParser")
        self._analyzer = self._object(f"{_CATALYST}analysis.SimpleAnalyzer")
        self._none = view.scala.Option.empty()
        self._nil = self._object("scala.collection.immutable.Nil")
        self._refused = {self._class(name): why for name, why in _REFUSED.items()}
        self._known: dict[str, str | None] = {}

    def analyse(self, text: str, schema: str) -> Analysis:
        """``text`` over the columns of ``schema``, which is written as in CREATE TABLE."""
        try:
            parsed = self._parser.parseExpression(text)
        except Py4JJavaError as error:
            return {"wrong": _message(error), "unparsed": True}
        written = _Node.of(parsed)
        if written.name == "Alias":
            return {"wrong": "an alias is not an expression", "unparsed": True}
        try:
            plan = self._resolved(parsed, schema)
        except Py4JJavaError as error:
            return {"wrong": _message(error)}
        is_projection = plan.getClass().getSimpleName() == "Project"
        tree = _Node.of(plan.projectList().apply(0)) if is_projection else written
        refused = self._why_refused(tree) or _other_rows(written, plan)
        if refused:
            return {"refused": refused}
        # Names of fields are quoted in this form. It would also say which fields are never null.
        type_ = tree.java.dataType().asNullable().sql()
        return {"type": type_, "regexes": list(_regexes(tree))}

    def _resolved(self, parsed: Any, schema: str) -> Any:
        types = self._types.StructType
        columns = self._attributes(types.fromDDL(schema) if schema else types())
        rows = self._relation(columns, self._nil, False, self._none)
        alias = self._alias(parsed, self._none)
        plan = self._analyzer.execute(self._project(self._nil.appended(alias), rows))
        self._analyzer.checkAnalysis(plan)
        return plan

    def _why_refused(self, tree: _Node) -> str | None:
        for node in tree:
            if why := self._why(node):
                return f"{node.java.prettyName()}() {why}"
        if not tree.java.deterministic():
            return "it is not deterministic"
        found = (rule(node) for rule in (_misread, _scan, _unbounded) for node in tree)
        return next(filter(None, found), None)

    def _why(self, node: _Node) -> str | None:
        """Why expressions of the class of ``node`` are refused."""
        if node.name not in self._known:
            found = (why for class_, why in self._refused.items() if class_.isInstance(node.java))
            self._known[node.name] = next(found, None)
        return self._known[node.name]

    def _object(self, name: str) -> Any:
        return self._class(f"{name}$").getField("MODULE$").get(None)

    def _class(self, name: str) -> Any:
        return self._view.java.lang.Class.forName(name, True, self._loader)


def _misread(node: _Node) -> str | None:
    """Spark reads the text 12:30 as a time of today, and the constant 'now' as this moment."""
    if node.name in _READS_TEXT:
        # The guard of these functions (`expressions/hardening.py`) is about text.
        given = node.java.left().dataType().catalogString()
        is_text = given in ("string", "timestamp", "date", "timestamp_ntz")
        return None if is_text else f"{node.java.prettyName()}() takes a text here, not {given}"
    if node.name in _READS_DOCUMENTS and "timestamp" in node.type:
        options = "" if node.name == "VariantGet" else str(node.java.options())
        # Without a pattern, Spark reads text as in a cast.
        if "timestampFormat" not in options:
            return "text would be read as a timestamp; read a string, and write to_timestamp(...)"
    for cast in node.children:
        if cast.name != "Cast":
            continue
        source, target, text = cast.children[0].type, cast.type, cast.children[0].java
        if source != "string":
            if "timestamp" in target and source != target and _TEXT.search(source):
                return f"{text.sql()} would be read as {target}; write to_timestamp(...) in it"
            continue
        if target.startswith("timestamp") or (target == "date" and text.foldable()):
            return f"{text.sql()} would be read as a {target}; write to_{target}(...) around it"
    return None


def _scan(node: _Node) -> str | None:
    """A lambda that reads an array or a map from outside of it takes time that grows with the
    square of a record's size."""
    if node.name != "LambdaFunction":
        return None
    variables = (v for one in node if one.name == "LambdaFunction" for v in one.children[1:])
    own = {str(variable.java.exprId()) for variable in variables}
    for part in node.children[0]:
        if part.name not in ("AttributeReference", "NamedLambdaVariable"):
            continue
        if part.type.startswith(("array", "map")) and str(part.java.exprId()) not in own:
            return f"{part.java.name()} is read from outside of the lambda, for every element"
    return None


def _unbounded(node: _Node) -> str | None:
    """What a hostile record could let grow without bound; and what reads a file."""
    if what := _PATTERNS.get(node.name):
        right = node.children[1].java
        return None if right.foldable() else f"a {what} must be a literal text"
    if node.name == "ArrayAggregate":
        start = node.children[1].type
        if any(each in start for each in _GROWING):
            return f"aggregate() starts with a {start}, which could grow with every element"
    if node.name == "XmlToStructs" and "xsdpath" in str(node.java.options()).lower():
        return "from_xml() takes no option with the path of a file"
    return None


def _other_rows(written: _Node, plan: Any) -> str | None:
    """Why an expression is not one value of one row. Generators, aggregates, window functions and
    time windows make other operators than a projection; a subquery has a plan of its own."""
    names = {node.name for node in written}
    if any(name.endswith("Star") for name in names):
        return "it has a *, which stands for columns that are not named"
    if any(name.endswith(("Subquery", "Exists")) for name in names):
        return "it has a subquery"
    is_projection = plan.getClass().getSimpleName() == "Project"
    if not is_projection or plan.child().getClass().getSimpleName() != "LocalRelation":
        return "it needs or returns other rows than its own"
    return None


def _regexes(tree: _Node) -> Iterator[str | None]:
    for node in tree:
        for place in _REGEXES.get(node.name, ()):
            for regex in [*_each(node.java.children())][place : place + 1]:
                yield str(regex.eval(None)) if regex.foldable() else None


def _replacement(java: Any) -> list[Any]:
    """What Spark runs in place of a function, if the tree has its arguments instead."""
    try:
        return [java.replacement()]
    except Py4JError:
        return []


def _each(values: Any) -> Iterator[Any]:
    return (values.apply(place) for place in range(values.size()))


def _message(error: Py4JJavaError) -> str:
    """Spark's sentence, without the name of its class, its code and its plan."""
    text = str(error.java_exception.getMessage() or error.java_exception.toString())
    text = re.split(r"\s*SQLSTATE|;\n|\n\n", text)[0].strip()
    return re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", " ".join(text.split()))
