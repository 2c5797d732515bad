"""Asks DuckDB, within limits of time, memory and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock, Timer
from typing import TYPE_CHECKING, Any

from headgate.insight.dashboard.errors import BadQuestionError, TooMuchError
from headgate.insight.querying.sandbox import connected, lock

if TYPE_CHECKING:
    import duckdb

    from headgate.insight.dashboard.reading.columns import Source

Row = tuple[Any, ...]
StatementCheck = Callable[["duckdb.DuckDBPyConnection"], None]
_LESS = "ask about a shorter time, or fewer rows, such as those of one key"
_SMALLER = f"a total is greater than its type can be: {_LESS}"


@dataclass(frozen=True)
class QueryLimits:
    """``seconds`` limits one question, ``memory`` and ``threads`` one database: all questions of
    ``ask`` share one, each ``connection`` has its own. ``at_once`` questions run side by side: the
    stream on the same machine needs the other cores."""

    seconds: float = 10.0
    memory: str = "512MB"
    threads: int = 2
    at_once: int = 2


@dataclass(frozen=True)
class Answer:
    """Columns with the names of DuckDB's types, and rows."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: Sequence[Row]


@dataclass
class Engine:
    """Each question has a session of its own, which sees the sources that were given to it."""

    limits: QueryLimits = field(default_factory=QueryLimits)

    def __post_init__(self) -> None:
        self._turns = BoundedSemaphore(self.limits.at_once)
        self._database: duckdb.DuckDBPyConnection | None = None
        self._lock = Lock()

    def ask(
        self, sources: Mapping[str, Source], sql: str, parameters: Sequence[object] = ()
    ) -> Answer:
        """The answer of a query whose SQL is Headgate's own, not a user's. Blocks until fewer than
        ``at_once`` questions run. Raises TooMuchError, BadQuestionError."""
        with self._turns, self._session(sources) as connection, self.limited(connection):
            connection.execute(sql, list(parameters))
            return answered(connection)

    @contextmanager
    def _session(self, sources: Mapping[str, Source]) -> Iterator[duckdb.DuckDBPyConnection]:
        """A session of the one locked database, which sees only its own sources. The database is
        created once, because that takes longer than most answers."""
        with self._lock:
            if self._database is None:
                self._database = self._made()
                lock(self._database)
            session = self._database.cursor()
        try:
            for name, source in sources.items():
                session.register(name, source)
            yield session
        finally:
            session.close()

    @contextmanager
    def connection(
        self, sources: Mapping[str, Source], prepare: StatementCheck = lambda _: None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A locked connection for one question. Blocks like ``ask``. ``prepare`` may change the
        connection before it is locked."""
        with self._turns:
            connection = self._made()
            try:
                for name, source in sources.items():
                    connection.register(name, source)
                prepare(connection)
                lock(connection)
                yield connection
            finally:
                connection.close()

    def _made(self) -> duckdb.DuckDBPyConnection:
        # No temporary folder: data that does not fit into memory is not written to a file.
        return connected(
            threads=self.limits.threads,
            memory_limit=self.limits.memory,
            temp_directory="",
            autoinstall_known_extensions="false",
            autoload_known_extensions="false",
        )

    @contextmanager
    def limited(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Interrupts the connection after ``seconds``. Raises TooMuchError, or BadQuestionError if
        a value cannot be converted, or is greater than its type can be."""
        import duckdb

        timer = Timer(self.limits.seconds, connection.interrupt)
        timer.daemon = True
        timer.start()
        slow = f"the answer took longer than {self.limits.seconds:.0f} s"
        large = f"the answer needed more than {self.limits.memory} of memory"
        try:
            yield
        except duckdb.InterruptException as error:
            raise TooMuchError(slow, remedy=_LESS) from error
        except duckdb.OutOfMemoryException as error:
            raise TooMuchError(large, remedy=_LESS) from error
        except OSError as error:
            # Arrow turns an error of DuckDB into OSError while it reads the rows.
            if str(error).startswith("INTERRUPT"):
                raise TooMuchError(slow, remedy=_LESS) from error
            if str(error).startswith("Out of Memory"):
                raise TooMuchError(large, remedy=_LESS) from error
            raise
        except duckdb.ConversionException as error:
            raise BadQuestionError(first_line(error), remedy="correct the value") from error
        except duckdb.OutOfRangeException as error:
            raise BadQuestionError(first_line(error), remedy=_SMALLER) from error
        finally:
            timer.cancel()


def answered(connection: duckdb.DuckDBPyConnection, most: int | None = None) -> Answer:
    """The result of what was executed last, or its first ``most`` rows."""
    described = connection.description or ()
    rows = connection.fetchall() if most is None else connection.fetchmany(most)
    return Answer(
        tuple(column[0] for column in described), tuple(str(c[1]) for c in described), rows
    )


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
