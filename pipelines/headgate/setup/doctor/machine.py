"""Checks of the machine: Java, the jars it runs, and memory."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from headgate.commands import shell_command
from headgate.declaration.quantities import size_text
from headgate.errors import HeadgateError
from headgate.machine.jars import cache
from headgate.machine.jars import java as javas
from headgate.machine.jars.lock import LockSet, locked
from headgate.setup.doctor.check_result import CheckResult, failed, passed

# One driver JVM, its off-heap buffers and the Python beside it.
_MEMORY = 3 * 1024**3

_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

_JAVA_NEEDED = "Java " + " or ".join(str(major) for major in javas.SUPPORTED)


def java(platform: str = sys.platform) -> CheckResult:
    found = javas.find()
    if found is None and javas.java_home() is not None:
        return failed(
            "Java",
            f"JAVA_HOME is {javas.java_home()}, and there is no bin/java in it",
            _JAVA_NEEDED,
            "Point JAVA_HOME to a Java 17, or leave the choice to PATH: unset JAVA_HOME",
        )
    if found is None:
        return failed("Java", "none on PATH", _JAVA_NEEDED, _install_java(platform))
    described = f"{found.version or 'a java of unknown version'} ({found.executable})"
    if found.major not in javas.SUPPORTED:
        return failed(
            "Java",
            described,
            _JAVA_NEEDED,
            f"{_install_java(platform)}; then point to it: export JAVA_HOME=<its folder>",
        )
    if found.refusal:
        return failed(
            "Java",
            f"{described} does not start with the settings of a driver: {found.refusal}",
            f"{_JAVA_NEEDED} that starts with them",
            f"Correct {javas.HEAP} or {javas.OPTIONS} in the environment",
        )
    return passed("Java", described, _JAVA_NEEDED)


def _install_java(platform: str) -> str:
    if platform == "darwin":
        return 'Install it: brew install openjdk@17; export JAVA_HOME="$(brew --prefix openjdk@17)"'
    return "Install it: sudo apt install openjdk-17-jre-headless (or your system's package)"


def pinned_jars() -> CheckResult:
    """Passes if all jars are missing, because a pipeline of files needs none. Fails if only some
    are missing, or if one is damaged."""
    try:
        jars = locked()
        wrong = cache.problems(cache.cache_folder(), jars)
    except HeadgateError as error:
        return failed("jars", error.message, "the jars of infra/jars.lock", error.remedy)
    needed = f"{len(jars)} pinned jars in {cache.cache_folder()}, for Kafka alone"
    if len(wrong) == len(jars) and set(wrong.values()) == {cache.MISSING}:
        fetch = shell_command("doctor", "--fetch-jars")
        found = f"none of them yet: only Kafka needs them, and {fetch} fetches them"
        return passed("jars", found, needed)
    if wrong:
        found = ", ".join(f"{name} is {problem}" for name, problem in wrong.items())
        return failed("jars", found, needed, cache.REMEDY)
    return passed("jars", "all of them, with the pinned SHA-256", needed)


def broker_jars() -> CheckResult:
    """Passes if jars are missing: only `headgate kafka up` needs them, and it fetches them."""
    try:
        jars = locked(LockSet.KAFKA)
        wrong = cache.problems(cache.cache_folder(), jars)
    except HeadgateError as error:
        return failed("broker jars", error.message, "the jars of infra/kafka.lock", error.remedy)
    needed = f"{len(jars)} pinned jars in {cache.cache_folder()}, for the development broker alone"
    damaged = [
        f"{name} is {problem}" for name, problem in wrong.items() if problem != cache.MISSING
    ]
    if damaged:
        return failed("broker jars", ", ".join(damaged), needed, cache.REMEDY)
    if wrong:
        count = "none of them" if len(wrong) == len(jars) else f"{len(jars) - len(wrong)} of them"
        up = shell_command("kafka up")
        found = f"{count} yet: {up} fetches them, and nothing else needs them"
        return passed("broker jars", found, needed)
    return passed("broker jars", "all of them, with the pinned SHA-256", needed)


def memory() -> CheckResult:
    """The machine's memory, or the container's limit if that is lower."""
    total = min([psutil.virtual_memory().total, *_container_limits()])
    needed = f"at least {size_text(_MEMORY)}"
    if total < _MEMORY:
        return failed(
            "memory", size_text(total), needed, "Give the machine or the container more memory"
        )
    return passed("memory", size_text(total), needed)


def _container_limits() -> list[int]:
    limits = []
    for path in _CONTAINER_LIMITS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means no limit
            limits.append(int(text))
    return limits
