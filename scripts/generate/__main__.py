"""Make everything that is made from the code, where it is out of date.

With `--all` also what takes minutes: the session that ships with the pages that show it, the
notebooks, and the pictures of the inspector in the documentation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from scripts.generate.comparison_tables import write_tables
from scripts.generate.files import ROOT
from scripts.generate.notebooks import find_notebooks, run_notebook
from scripts.generate.registry import list_quick, list_slow

BIN = Path(sys.executable).parent
PICTURES = "app/tests/ui/test_inspector_views.py"
"""The tests that take the pictures of the inspector."""


def main() -> None:
    """Make what is out of date, and say what that was."""
    parser = argparse.ArgumentParser(prog="bin/generate", description=__doc__)
    parser.add_argument("--all", action="store_true", help="also what takes minutes")
    parser.add_argument("--sample", action="store_true", help="also the session that ships")
    parser.add_argument("--comparison", type=Path, metavar="FOLDER", help="a run's tables, too")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("TOPICLOOM_")]:
        del os.environ[name]  # what ships is made by the default settings
    lock = [str(BIN / "uv"), "lock", "--quiet"]
    if subprocess.run([*lock, "--check", "--offline"], check=False, capture_output=True).returncode:
        subprocess.run(lock, check=True)
    for file in [*list_quick(), *(list_slow() if given.all or given.sample else ())]:
        if not file.is_current():
            file.write()
            print(file.path.relative_to(ROOT))
    if given.comparison:
        write_tables(given.comparison)
    if given.all:
        for notebook in find_notebooks():
            run_notebook(notebook)
        pictures = {**os.environ, "PICTURES": "docs/images"}
        subprocess.run([BIN / "python", "-m", "pytest", PICTURES], env=pictures, check=True)


if __name__ == "__main__":
    main()
