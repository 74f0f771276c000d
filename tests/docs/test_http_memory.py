"""The examples of the page on memory over HTTP run as they stand there, and its table is whole."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoints import Talk, talking
from sessions import tell

from topicloom import Memory
from topicloom.hosting import name_thread
from topicloom_app.serve.memory_routes import describe_memory

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "http-memory.md").read_text("utf-8")
CLIENT = ROOT / "clients" / "typescript"
SAID = ["The boiler is a Vaillant of 2009.", "We paint the kitchen green."]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A server with the thread of the page."""
    with talking(tmp_path / "sessions") as opened:
        tell(opened.graph, name_thread("lake"), *SAID, "Bye.", keep=0)
        yield opened


def block(language: str, talk: Talk) -> str:
    """The block of a language, for the server of the test."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found).replace("http://127.0.0.1:8321", talk.url.removesuffix("/v1"))


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("curl"), reason="curl is not installed: ITS LINES ARE NOT TESTED"
)
def test_the_lines_with_curl_are_answered(talk: Talk) -> None:
    asked = ["bash", "-c", block("sh", talk).replace("\n", " -sf; echo;\n")]
    done = subprocess.run(asked, capture_output=True, check=True, text=True)
    threads, topics, found, changed, would = map(json.loads, done.stdout.split("\n")[:-1])
    assert [thread["thread"] for thread in threads] == ["lake"]
    assert topics[0]["id"] == "t1"
    assert found[0]["message"]["text"] == SAID[0]
    assert changed["topic"]["name"] == "Lake house"
    assert would["messages"][0]["text"] == SAID[1]


@pytest.mark.long
def test_the_typescript_client_talks_to_a_server(talk: Talk, tmp_path: Path) -> None:
    made = tmp_path / "client"
    shutil.copytree(CLIENT, made, ignore=shutil.ignore_patterns("node_modules", "dist"))
    install(made)
    (made / "src" / "example.ts").write_text(block("ts", talk), "utf-8")
    for command in (["npm", "run", "build"], ["node", "dist/example.js"]):
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    found, *_, changed, error = done.stdout.splitlines()
    assert found.endswith(SAID[0])
    assert changed == "Lake house"
    assert error.startswith("400 session 'lake' has no message 'm99'")


def install(folder: Path) -> None:
    """Install what the client needs, or skip so that it is seen."""
    npm = shutil.which("npm") or pytest.skip("Node is not there: THE CLIENT IS NOT TESTED")
    command = [npm, "ci", "--prefer-offline", "--fetch-retries=0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm installs nothing here: THE CLIENT IS NOT TESTED ({done.stderr[-200:]})")


def test_the_table_names_every_path_and_every_method() -> None:
    table = PAGE.partition("| in Python | over HTTP |")[2]
    for path in describe_memory()["paths"]:
        shown = re.sub(r"^/v1/memory(/threads/\{thread\})?", "", path)
        for name, example in (("topic", "t3"), ("message", "m42"), ("turn", "7")):
            shown = shown.replace(f"{{{name}}}", example)
        assert shown in table, path
    public = [
        name for name in dir(Memory) if not name.startswith("_") and f"a{name}" in dir(Memory)
    ]
    assert len(public) >= 20
    for name in public:
        assert re.search(rf"\b{name}\b", table), name
