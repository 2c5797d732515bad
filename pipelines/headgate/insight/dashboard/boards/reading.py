"""From a YAML file to a :class:`~headgate.insight.dashboard.boards.model.Board`.

A file is checked like a declaration: all problems are reported at once, each with its line and key.
The SQL is bound to the columns of the declared tables, which need not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.errors import DeclarationProblem, Invalid
from headgate.declaration.files import declarations_in
from headgate.declaration.model import Pipeline
from headgate.declaration.names import nearest
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.reading.checker import Checker
from headgate.declaration.reading.document import parse, read_file
from headgate.errors import HeadgateError
from headgate.insight.dashboard.boards.binding import Bind, Result, declared_columns
from headgate.insight.dashboard.boards.model import BOARD, Board, Chart, TableName
from headgate.insight.dashboard.boards.statement import tables_in
from headgate.insight.dashboard.questions.cells import is_number

FOLDER = "dashboards"


class BoardError(HeadgateError, code=exit_codes.USAGE):
    """All the problems of a dashboard's file."""

    def __init__(self, file: Path, problems: Iterable[DeclarationProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)), shell_command("dashboard", "--check"))
        self.file = file


def board_files(project: Path) -> tuple[Path, ...]:
    """The files of a project's dashboards, sorted by name."""
    return declarations_in(project / FOLDER)


def read_board(file: Path, pipelines: Mapping[str, Pipeline], bind: Bind) -> Board:
    """Raises BoardError with all its problems."""
    report = ProblemReport(file)
    node = parse(read_file(file, report, "dashboard"), report)
    if node is not None:
        root = Checker(report, file.parent).check(node, BOARD, "", 1)
        board = _build(Section.of(root), report, pipelines, bind) if root else None
        if board is not None and not report.problems:
            return board
    raise BoardError(file, report.problems)


def tables_read(file: Path) -> tuple[TableName, ...]:
    """The tables that the charts of a dashboard read; none if the file, or some SQL in it, cannot
    be read."""
    report = ProblemReport(file)
    node = parse(read_file(file, report, "dashboard"), report)
    root = Checker(report, file.parent).check(node, BOARD, "", 1) if node is not None else None
    charts = Section.of(root).entries("charts") if root else {}
    found: list[TableName] = []
    for field in charts.values():
        if (sql := Section.of(field).get("sql")) is None:
            return ()
        try:
            found += tables_in(sql.text)
        except Invalid:
            return ()
    return tuple(found)


def _build(
    root: Section, report: ProblemReport, pipelines: Mapping[str, Pipeline], bind: Bind
) -> Board | None:
    charts: dict[str, Chart] = {}
    for name, field in root.entries("charts").items():
        chart = _chart(name, Section.of(field), report, pipelines, bind)
        if chart is not None:
            charts[name] = chart
    board = root.text("dashboard")
    if report.problems or board is None:
        return None
    return Board(board, root.text("title", board) or board, charts, report.file)


def _chart(
    name: str,
    section: Section,
    report: ProblemReport,
    pipelines: Mapping[str, Pipeline],
    bind: Bind,
) -> Chart | None:
    sql = section.get("sql")
    if sql is None or section.text("kind") is None:
        return None
    try:
        tables = tables_in(sql.text)
        known = {table: _declared(table, pipelines).gold[table.table] for table in tables}
        result = bind(sql.text, {name: declared_columns(each) for name, each in known.items()})
    except Invalid as error:
        report.invalid(sql, error)
        return None
    before = len(report.problems)
    x = _column(section.get("x"), result, report) or result.columns[0]
    y = tuple(filter(None, (_column(f, result, report) for f in _items(section, "y"))))
    chart = Chart(
        name=name,
        kind=section.text("kind"),  # type: ignore[arg-type]
        title=section.text("title", name) or name,
        sql=sql.text,
        width=section.text("width", "half"),  # type: ignore[arg-type]
        x=x,
        y=y or _numbers(result, x),
        series=_column(section.get("series"), result, report),
        unit=section.text("unit"),
        tables=tables,
    )
    if len(report.problems) == before:
        _check(chart, sql, result, report)
    return chart


def _items(section: Section, name: str) -> Sequence[Field]:
    found = section.get(name)
    return found.items if found else ()


def _numbers(result: Result, x: str) -> tuple[str, ...]:
    found = zip(result.columns, result.types, strict=True)
    return tuple(name for name, type_ in found if is_number(type_) and name != x)


def _column(at: Field | None, result: Result, report: ProblemReport) -> str | None:
    if at is None or at.text in result.columns:
        return at.text if at else None
    known = ", ".join(result.columns)
    guess = nearest(at.text, result.columns)
    report.at(at, f"{at.text!r} is not a column of the SQL, which has {known}", guess)
    return None


def _check(chart: Chart, sql: Field, result: Result, report: ProblemReport) -> None:
    types = dict(zip(result.columns, result.types, strict=True))
    if chart.kind == "number" and chart.y == () and is_number(result.types[0]):
        return
    if chart.kind != "table" and not chart.y:
        report.at(sql, f"a {chart.kind} needs a column with numbers")
    for name in chart.y:
        if chart.kind in ("line", "bar") and not is_number(types[name]):
            report.at(sql, f"the column {name!r} is {types[name]}, not a number")
    rising = types[chart.x or ""]
    if chart.kind == "line" and not (is_number(rising) or rising.startswith(("TIMESTAMP", "DATE"))):
        report.at(sql, f"the x of a line, {chart.x!r}, is {rising}: use a bar")
    if chart.series is not None and len(chart.y) != 1:
        report.at(sql, "a chart with series needs exactly one y")


def _declared(table: TableName, pipelines: Mapping[str, Pipeline]) -> Pipeline:
    """The pipeline of a table. Raises Invalid if there is none."""
    if table.pipeline is None:
        having = [each for each in pipelines.values() if table.table in each.gold]
        if len(having) == 1:
            return having[0]
        if having:
            names = ", ".join(each.name for each in having)
            first = f"{having[0].name}.gold.{table.table}"
            raise Invalid(f"{table} is a table of several pipelines: {names}", first)
    elif table.pipeline in pipelines and table.table in pipelines[table.pipeline].gold:
        return pipelines[table.pipeline]
    known = [f"{p.name}.gold.{name}" for p in pipelines.values() for name in p.gold]
    raise Invalid(
        f"there is no table {table}; the tables are {', '.join(known) or 'none'}",
        nearest(str(table), [*known, *(name.partition(".")[2] for name in known)]),
    )
