"""Runs the blocks of docs/frontends.md, each with the real package that it is for.

    python scripts/try_frontends.py FOLDER

Makes environments in the folder, once, with all the packages (3 GB); needs Node with npm. What is
run is `tests/docs/test_frontends.py`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEPARATE = ("streamlit", "gradio", "chainlit")
"""Each in an environment of its own: they do not agree on versions with all that tests need."""
TESTING = ("pytest", "pytest-asyncio", "hypothesis", "aiohttp")
NODE = (
    "@langchain/langgraph-sdk@2",
    "@langchain/core@1",
    "react@19",
    "react-dom@19",
    "jsdom@26",
    "esbuild@0.28",
)


def make_environment(folder: Path, package: str) -> Path:
    """The Python of an environment with the package, which is made if it is not there."""
    python = folder / package / "bin" / "python"
    uv = str(Path(sys.executable).with_name("uv"))
    if not python.exists():
        subprocess.run([uv, "venv", "--python", sys.executable, folder / package], check=True)
        install = [uv, "pip", "install", "--python", str(python), "-e", str(ROOT)]
        subprocess.run([*install, package, *TESTING], check=True)
    return python


def main() -> int:
    """Run them; returns 1 if one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules").exists():
        install = ["npm", "install", "--no-save", "--prefix", str(folder), *NODE]
        subprocess.run(install, check=True)
    pythons = {name: make_environment(folder, name) for name in SEPARATE}
    pythons["ag_ui or use_stream"] = Path(sys.executable)
    modules = {"NODE_MODULES": str(folder / "node_modules")}
    failed = False
    for name, python in pythons.items():
        tests = ["-W", "default", "-k", name, "tests/docs/test_frontends.py"]
        done = subprocess.run(
            [python, "-m", "pytest", "-q", *tests],
            cwd=ROOT,
            env={**os.environ, **modules},
            check=False,
        )
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
