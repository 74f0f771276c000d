"""Notebooks, run and stored with what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from scripts.generate.files import ROOT


def find_notebooks() -> list[Path]:
    """The notebooks of the repository."""
    return sorted(ROOT.glob("notebooks/*.ipynb"))


def run_notebook(path: Path) -> None:
    """Run a notebook, and write it with its outputs, without what differs from run to run."""
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, record_timing=False, resources=place).execute()
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
