"""The settings of the Airflow of ``headgate up``, and the environment of its components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.machine.process_tree.ports import HOST, free_port, refusal


class StandaloneError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """Airflow did not start or end."""


class NoAirflowError(HeadgateError, code=exit_codes.MACHINE):
    """The environment has no Airflow."""


class RunsAlreadyError(HeadgateError):
    """An Airflow runs in this home."""


class AskedWrongError(HeadgateError, code=exit_codes.USAGE):
    """A folder, a port or a database that cannot be used."""


WEB = 8080
# A log server is for other machines, and listens on all interfaces. The pages read logs from disk.
_LOGS = "--skip-serve-logs"
COMPONENTS: Mapping[str, Sequence[str]] = {
    "api-server": (),
    "scheduler": (_LOGS,),
    "dag-processor": (),
    "triggerer": (_LOGS,),
}
"""The components, with the options of their commands."""
DATABASE = "HEADGATE_AIRFLOW_DB"
"""The environment variable for the address of a PostgreSQL database, as
postgresql://USER:PASSWORD@HOST/DATABASE. Without it, SQLite in the home is used."""
ADMIN = "admin"
LOGGING = "headgate.airflow.task_logs.CONFIG"
_ROOT = "HEADGATE_ROOT"
_SETTINGS = ("AIRFLOW__", "_AIRFLOW_")
_FOLDERS = ("AIRFLOW_HOME", "AIRFLOW_CONFIG")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOOPBACK = (HOST, "localhost")


def web_port(wanted: int, another: str) -> int:
    """The port of Airflow's pages: ``wanted``, or any free port for 0. Raises AskedWrongError with
    the command ``another``, which takes any free port."""
    if wanted and (why := refusal(wanted)) is not None:
        raise AskedWrongError(
            f"port {wanted} cannot be used: {why}", f"take another one: {another}"
        )
    return wanted or free_port()


@dataclass(frozen=True)
class AirflowSettings:
    """``work`` is the base of relative paths in declarations. ``root`` has the tables; None means
    ``lake`` beside the declarations. ``port`` is that of Airflow's pages. ``switched_on``: new DAGs
    start switched on."""

    home: Path
    dags: Path
    work: Path
    root: str | None
    port: int
    database: str | None = None
    switched_on: bool = False

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def passwords(self) -> Path:
        return self.home / "passwords.json"


def environment(settings: AirflowSettings, outer: Mapping[str, str]) -> dict[str, str]:
    """The environment of every component: ``outer`` without settings of Airflow, and the settings.
    Connections and variables of Airflow are those of ``outer``. No component asks a proxy for
    another one."""
    kept = {name: value for name, value in outer.items() if not _is_ours(name)}
    root = {} if settings.root is None else {_ROOT: settings.root}
    airflow = {f"AIRFLOW__{name}": str(value) for name, value in _airflow(settings).items()}
    return {**kept, **_no_proxy(outer), **root, "AIRFLOW_HOME": str(settings.home), **airflow}


def _no_proxy(outer: Mapping[str, str]) -> dict[str, str]:
    """The hosts without a proxy: those of ``outer``, and this machine. Nothing without a proxy:
    on macOS, these variables replace all settings of the system's proxies."""
    if not any(outer.get(name) for name in outer if name.lower() in _PROXIES):
        return {}
    made = {}
    for name, other in (("no_proxy", "NO_PROXY"), ("NO_PROXY", "no_proxy")):
        given = outer.get(name) or outer.get(other) or ""
        hosts = [host for host in map(str.strip, given.split(",")) if host]
        # Python's own client reads a * only if it is alone.
        added = [] if hosts == ["*"] else [host for host in _LOOPBACK if host not in hosts]
        made[name] = ",".join([*hosts, *added])
    return made


def _is_ours(name: str) -> bool:
    return name.startswith(_SETTINGS) or name in (*_FOLDERS, DATABASE, _ROOT)


def _airflow(settings: AirflowSettings) -> dict[str, object]:
    values: dict[str, object] = {
        "CORE__DAGS_FOLDER": settings.dags,
        "CORE__LOAD_EXAMPLES": False,
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": not settings.switched_on,
        # Airflow forks a process for each slot when it starts, and few tasks run at a time.
        "CORE__PARALLELISM": 4,
        # A report whose answer is late is sent again. SQLite locks no rows, so Airflow would do the
        # work of both.
        "WORKERS__EXECUTION_API_TIMEOUT": 60,
        # Without this, tasks use the server at port 8080.
        "CORE__EXECUTION_API_SERVER_URL": f"{settings.address}/execution/",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin",
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": settings.passwords,
        "API__HOST": HOST,
        "API__PORT": settings.port,
        "API__BASE_URL": settings.address,
        "API__WORKERS": 1,
        "DAG_PROCESSOR__REFRESH_INTERVAL": 15,
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": 15,
        # A busy machine may need longer than the default.
        "CORE__DAGBAG_IMPORT_TIMEOUT": 120,
        "DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": 180,
        "LOGGING__LOGGING_CONFIG_CLASS": LOGGING,
    }
    if settings.database is not None:
        values["DATABASE__SQL_ALCHEMY_CONN"] = dialect(settings.database)
    return values


def dialect(database: str) -> str:
    """The address of a PostgreSQL in SQLAlchemy's format."""
    scheme, separator, rest = database.partition("://")
    named = "postgresql+psycopg2" if scheme in ("postgres", "postgresql") else scheme
    return f"{named}{separator}{rest}"


def secrets_of(database: str) -> list[str]:
    """What must not be shown of a database's address: the address itself, and its password."""
    user, at, _ = database.partition("://")[2].rpartition("@")
    password = user.partition(":")[2] if at else ""
    return [database, dialect(database), *{each for each in (password, unquote(password)) if each}]
