"""Files that are no longer written are deleted."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.machine.process_tree.guard import expire

NOW = 4_000_000_000.0  # later than any clock: also folders made now are old
KEPT = 86_400.0


def test_old_files_go_with_their_folders(tmp_path: Path) -> None:
    ages = {"dag/run-1/a.log": KEPT + 1, "dag/run-2/a.log": KEPT + 1, "dag/run-2/b.log": KEPT - 1}
    for path, age in ages.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("said")
        os.utime(file, (NOW - age, NOW - age))
    (tmp_path / "latest").symlink_to("nowhere")
    os.utime(tmp_path / "latest", (NOW, NOW), follow_symlinks=False)
    expire(tmp_path, KEPT, NOW)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"dag", "dag/run-2", "dag/run-2/b.log", "latest"}
    expire(tmp_path / "never", KEPT, NOW)
