"""The pages show code that runs, and name files that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from openai_behaviours import Reply
from openai_server import OpenAIServer

from topicloom.graph.checkpoints import local_checkpointer
from topicloom.graph.session import build_session_graph

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "README.zh.md",
    "CONTRIBUTING.md",
    *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md"))),
]

FOLDERS = r"bin|\.ci|scripts|tests|benchmarks|notebooks|lab"


SEPARATE = {"docs/frontends.md"}
"""Pages whose blocks need packages of their own: `test_frontends.py`."""


def examples() -> list[Any]:
    return [
        pytest.param(code, id=f"{page}-{number}")
        for page in PAGES
        if page not in SEPARATE
        for number, code in enumerate(
            re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
        )
    ]


@pytest.fixture
def surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> dict[str, Any]:
    """A folder, a model, and a session of some turns, for examples that go on with one."""
    openai_server.otherwise(Reply("Noted."))
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    graph: Any = build_session_graph().compile(checkpointer=local_checkpointer())
    thread = {"configurable": {"thread_id": "before"}}
    for number in range(7):
        graph.invoke({"messages": [("user", f"This is message {number}.")]}, thread)
    return {"graph": graph, "thread": thread}


@pytest.mark.parametrize("code", examples())
def test_an_example_runs(code: str, surroundings: dict[str, Any]) -> None:
    exec(compile(code, "example", "exec"), surroundings)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_points_to_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not ((ROOT / page).parent / link).exists()]
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]+)(?:::(\w+))?`", text)
    missing += [name for name, _ in named if not (ROOT / name).exists()]
    missing += [test for name, test in named if test and not _has_test(ROOT / name, test)]
    assert not missing


def _has_test(path: Path, name: str) -> bool:
    return f"def {name}(" in path.read_text("utf-8")
