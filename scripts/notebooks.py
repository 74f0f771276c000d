"""Run the notebooks and store what they show: `python scripts/notebooks.py [FILE...]`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path: Path) -> None:
    """Run a notebook, and write it with its outputs, without what differs from run to run."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, record_timing=False, resources=place).execute()
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:] or sorted(map(str, NOTEBOOKS.glob("*.ipynb")))):
        run(file)
        print(file.name)
