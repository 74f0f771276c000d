"""Copies a folder of sessions, also while it is in use: python3 deploy/backup.py FOLDER COPY

Chains only grow, so what points at their ends is copied first: the checkpoints, then `heads.jsonl`
of each session, then all else. Needs nothing but Python.
"""

import os
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path


def copy_database(path: Path, target: Path) -> None:
    """Copy a file of SQLite as it is at one moment; who writes waits meanwhile."""
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(target)) as made:
        source.backup(made)


def copy_session(session: Path, target: Path) -> None:
    """Copy the files of a session, without its locks."""
    files = [f for f in session.rglob("*") if f.is_file() and not f.name.startswith(".")]
    for file in sorted(files, key=lambda f: f.name != "heads.jsonl"):
        made = target / file.relative_to(session)
        made.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # moved or deleted meanwhile
            shutil.copy2(file, made)


def main(folder: Path, target: Path) -> None:
    """Copy a folder to one that is not there yet; only its owner can read the copy."""
    if not folder.is_dir():
        raise SystemExit(f"{folder} is no folder: name the one that TOPICLOOM_FOLDER has")
    if target.exists():
        raise SystemExit(f"{target} is there already: name a new folder")
    os.umask(0o077)
    target.mkdir(parents=True)
    for database in sorted(folder.glob("*.sqlite")):
        copy_database(database, target / database.name)
    for session in sorted(path for path in folder.iterdir() if path.is_dir()):
        copy_session(session, target / session.name)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
