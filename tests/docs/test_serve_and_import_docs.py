"""The commands and clients of two pages run as they stand there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from command_line import Run, run
from endpoints import listening, remembered
from langchain_core.messages import HumanMessage, messages_to_dict
from sessions import open_graph
from vendor_exports import CLAUDE, MIXED, chatgpt, node

from topicloom_app import make_endpoint

__all__ = ["run"]

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str) -> list[list[str]]:
    """The command lines of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["topicloom"]]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["guides/import.md", "zh/import.md"])
def test_imports_and_exports(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = [Path(f"conversations-00{n}.json") for n in (0, 1)]
    for number, part in enumerate(parts):
        said = node(f"p{number}", "root", "user", f"茶{number}", time=1e9 + number)
        part.write_text(json.dumps([chatgpt(said, id=f"p{number}")]), "utf-8")
    Path("chatgpt-export").mkdir()
    Path("chatgpt-export", "conversations.json").write_text(json.dumps([MIXED]), "utf-8")
    Path("messages.json").write_text(
        json.dumps(messages_to_dict([HumanMessage("茶：一")])), "utf-8"
    )
    for name, value in (("chatgpt.zip", MIXED), ("claude.zip", CLAUDE)):
        with zipfile.ZipFile(name, "w") as packed:
            packed.writestr("conversations.json", json.dumps([value]))
    lines = commands(page)
    assert len(lines) in (12, 13)
    for line in lines:
        outcome = run(*line)
        assert (outcome.code, outcome.err) == (0, ""), line
    assert Path("all.html").read_text("utf-8").count("<article") == 5
    assert run("export", "chatgpt").out.count("\n**") == 4, "a session named after its file"


def test_a_server_is_begun_as_the_page_says(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # It gets as far as the keys, so that nothing is served.
    monkeypatch.setenv("TOPICLOOM_SERVE_KEYS", "none=,of these")
    lines = commands("guides/serve.md")
    assert len(lines) == 5
    for line in lines:
        assert "TOPICLOOM_SERVE_KEYS cannot be used" in run(*line).err


@pytest.mark.skipif(
    not shutil.which("curl"), reason="curl is not installed: ITS LINE IS NOT TESTED"
)
@pytest.mark.parametrize("page", ["guides/serve.md", "zh/quickstart.md"])
def test_the_line_with_curl_is_answered(tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    (line,) = (block for block in blocks if block.startswith("curl "))
    graph = open_graph(tmp_path)
    with listening(make_endpoint(graph)) as url:
        asked = ["bash", "-c", line.replace("http://127.0.0.1:8321/v1", url)]
        done = subprocess.run(asked, capture_output=True, check=True)
    assert json.loads(done.stdout)["choices"][0]["message"]["content"]
    said = remembered(tmp_path, graph, "ann")
    assert said[0]["content"] in line


@pytest.mark.slow
def test_the_client_talks_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "guides" / "serve.md").read_text("utf-8")
    (code, _) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    graph = open_graph(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with listening(make_endpoint(graph)) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        names: dict[str, object] = {}
        exec(compile(code, "serve.md", "exec"), names)
        names["client"].close()  # type: ignore[attr-defined]
    assert capsys.readouterr().out == "All right, noted."
    said = [m["content"] for m in remembered(tmp_path, graph, "ann")]
    assert said[::2] == ["The oak worktop costs 140 euros.", "What does it cost?"]
