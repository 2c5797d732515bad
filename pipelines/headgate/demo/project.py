"""The demo's own copy of the auctions example: nothing outside its folder is read or written."""

from __future__ import annotations

from pathlib import Path

from headgate.spec.errors import HeadgateError

_FILES = "files: {path: landing/bids, format: json, order: name}"
# The demo's producer renames whole files into place, so nothing has to settle.
_DEMO_FILES = "files: {path: landing/bids, format: json, order: name, settle: 0 seconds}"


def make(folder: Path, example: Path) -> Path:
    """Write ``pipelines/auctions.yml`` under ``folder`` and return its path.

    Raises HeadgateError where a demo has been before: its tables hold other events.
    """
    file = folder / "pipelines" / example.name
    if file.exists():
        raise HeadgateError(
            f"{folder} holds a demo already", remedy=f"choose another folder, or: rm -r {folder}"
        )
    text = example.read_text(encoding="utf-8")
    if _FILES not in text:
        raise HeadgateError(
            f"{example} is not the example that the demo knows",
            remedy="restore it: git checkout -- pipelines/examples, or install Headgate again",
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace(_FILES, _DEMO_FILES), encoding="utf-8")
    landing(folder).mkdir(parents=True, exist_ok=True)
    return file


def landing(folder: Path) -> Path:
    return folder / "landing" / "bids"
