#!/bin/sh
# Says in plain words what this machine lacks before anything is downloaded.
# `headgate doctor` looks closer, once the packages are there.
set -eu

stop() {
    printf '%s\n' "$@" >&2
    exit 1
}

if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
    [ -x "$java" ] || stop \
        "JAVA_HOME is $JAVA_HOME, but there is no java in it." \
        "Point it to a Java 17, or leave the choice to PATH: unset JAVA_HOME"
else
    java=$(command -v java) || stop \
        "Java is missing: Spark needs Java 17 (or 21)." \
        "Install it, then run make again:" \
        "  Debian, Ubuntu:  sudo apt install openjdk-17-jre-headless" \
        "  Fedora:          sudo dnf install java-17-openjdk-headless" \
        "  macOS:           brew install openjdk@17" \
        "  without root:    unpack a JRE 17 anywhere and set JAVA_HOME to it"
fi

major=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]\{1,\}\).*/\2/p' | head -n 1)
case "$major" in
    17 | 21) ;;
    *) stop \
        "$java is Java ${major:-of an unknown version}; Spark needs Java 17 (or 21)." \
        "Install Java 17 beside it and point to it: export JAVA_HOME=<its folder>" ;;
esac
