#!/bin/sh
# Says in plain words what this machine lacks before anything is downloaded.
# `headgate doctor` looks closer, once the packages are there.
set -eu

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

stop_without() {
    stop "$1: Spark needs Java 17 (or 21)." \
        "Install it, then run make again:" \
        "  Debian, Ubuntu:  sudo apt install openjdk-17-jre-headless" \
        "  Fedora:          sudo dnf install java-17-openjdk-headless" \
        '  macOS:           brew install openjdk@17; export JAVA_HOME="$(brew --prefix openjdk@17)"' \
        "  without root:    unpack a JRE 17 anywhere" \
        "If another Java is first on PATH: export JAVA_HOME=<the folder of Java 17>"
}

if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
    [ -x "$java" ] || stop \
        "JAVA_HOME is $JAVA_HOME, but there is no java in it." \
        "Point it to a Java 17, or leave the choice to PATH: unset JAVA_HOME"
else
    java=$(command -v java) || stop_without "Java is missing"
fi

major=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]\{1,\}\).*/\2/p' | head -n 1)
case "$major" in
    17 | 21) ;;
    "") stop_without "$java does not run" ;;
    *) stop_without "$java is Java $major" ;;
esac
