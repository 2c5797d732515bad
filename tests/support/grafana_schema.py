"""Checks a dashboard against Grafana's published schema, with the TypeScript compiler."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

PACKAGES = ("typescript", "@grafana/schema")

# The schema has enums, but JSON has only their values.
_PROGRAM = """import type {{ Dashboard }} from '@grafana/schema';
type Plain<T> = T extends string ? `${{T}}` : T extends object ? Each<T> : T;
type Each<T> = {{ [K in keyof T]: Plain<T[K]> }};
export const dashboard = {dashboard} satisfies Plain<Partial<Dashboard>>;
"""


def install(folder: Path) -> bool:
    """Install compiler and schema into a folder; False if the registry is out of reach."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
    return subprocess.run(command, cwd=folder, timeout=300, check=False).returncode == 0


def problems(folder: Path, dashboard: object) -> str:
    """The compiler's messages about a dashboard; empty if nothing is wrong."""
    program = folder / "dashboard.ts"
    program.write_text(_PROGRAM.format(dashboard=json.dumps(dashboard)))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler"]
    options += ["--module", "esnext", "--target", "es2022", str(program)]
    done = subprocess.run(
        [str(folder / "node_modules" / ".bin" / "tsc"), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0 or "error TS" in done.stdout, done.stdout + done.stderr
    return done.stdout
