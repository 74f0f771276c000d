"""The pages show code that runs, and name files that are there."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from contextlib import closing
from pathlib import Path
from shutil import copytree
from textwrap import dedent
from typing import Any

import pytest
from command_line import Run, run
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tables import each_row

from topicloom import build_session_graph, local_checkpointer

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md"))),
]

__all__ = ["run"]

GROUPS = {"eval", "import", "topic", "train"}
"""Commands that are followed by another one."""
FOLDERS = r"bin|\.ci|app|scripts|tests|benchmarks|notebooks|lab"
PLACES = [ROOT, ROOT / "src" / "topicloom", ROOT / "app" / "src" / "topicloom_app"]
"""Where the modules are that pages name by their folder."""
LAKE: Any = {"configurable": {"thread_id": "lake"}}
SEPARATE = {"docs/guides/frontends.md"}
"""Pages whose blocks need packages of their own: `test_frontends.py`."""


@pytest.fixture(scope="session")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a user who has a session of some turns."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TOPICLOOM_FOLDER", raising=False)  # as a reader has it
        patch.setenv("XDG_DATA_HOME", str(home))
        with closing(local_checkpointer()) as checkpointer:
            graph = build_session_graph().compile(checkpointer=checkpointer)
            for number in range(7):
                graph.invoke({"messages": [("user", f"This is message {number}.")]}, LAKE)
    return home


@pytest.fixture
def surroundings(
    talked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> dict[str, Any]:
    """A folder, a model, and a session of some turns, for examples that go on with one."""
    openai_server.otherwise(Reply("Noted."))
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("TOPICLOOM_FOLDER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    copytree(talked, tmp_path, dirs_exist_ok=True)
    graph: Any = build_session_graph().compile(checkpointer=local_checkpointer())
    return {"graph": graph, "thread": LAKE}


WITH_CODE = [
    # The code of Chinese pages is that of the English ones.
    pytest.param(p, marks=pytest.mark.slow if p.startswith("docs/zh/") else ())
    for p in PAGES
    if p not in SEPARATE and "```python" in (ROOT / p).read_text("utf-8")
]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE)
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")  # LangGraph calls it a beta
def test_the_examples_of_a_page_run_in_turn(page: str, surroundings: dict[str, Any]) -> None:
    for number, code in enumerate(blocks(page, "python")):
        exec(compile(code, f"{page}, example {number}", "exec"), surroundings)


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(rf"^ *```{language}\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    return [dedent(block) for block in found]  # those of tabs are indented


@pytest.mark.slow
@each_row("page", PAGES)
def test_commands_of_a_page_are_there_with_their_options(page: str, run: Run) -> None:
    for line in "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.match(r"\w+=", words[0]):
            words.pop(0)
        program, *given = words or [""]
        if program.rpartition("/")[2] == "topicloom":
            check_options(run, given)
        files = [w for w in words if re.fullmatch(rf"(?:{FOLDERS})/[\w./-]+", w)]
        assert all((ROOT / file).exists() for file in files), line


def check_options(run: Run, given: list[str]) -> None:
    """Fail if there is no such command, or if its help names no such option."""
    names = given[: 1 + (given[0] in GROUPS)]
    told = run(*names, "--help")
    assert (told.code, told.err) == (0, ""), names
    known = set(re.findall(r"--?[a-z][\w-]*", told.out))
    assert {w.partition("=")[0] for w in given if re.match("--?[a-z]", w)} <= known | {"--help"}


@each_row("page", PAGES)
def test_data_on_a_page_can_be_read(page: str) -> None:
    for text in blocks(page, "json"):
        json.loads(text)
    for text in blocks(page, "toml"):
        tomllib.loads(text)


@each_row("page", PAGES)
def test_what_a_page_points_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]+)(?:::(\w+))?`", text)
    missing += [name for name, _ in named if not (ROOT / name).exists()]
    missing += [test for name, test in named if test and not _has_test(ROOT / name, test)]
    modules = re.findall(r"`(\w+/\w+\.py)`", text)
    missing += [m for m in modules if not any((place / m).exists() for place in PLACES)]
    assert not missing


def _has_test(path: Path, name: str) -> bool:
    return f"def {name}(" in path.read_text("utf-8")
