"""Prompts of an application's own go before ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import past, record, tell, thread

from topicloom.errors import ConfigurationError
from topicloom.graph.session import build_session_graph
from topicloom.prompts.loader import Prompts, load_prompt
from topicloom.roles.models import open_model
from topicloom.settings import Settings


def folder_of(root: Path, **texts: str) -> Path:
    """A folder with prompts; `en_reader` is the text of `en/reader.md`."""
    for name, text in texts.items():
        path = root / f"{name.replace('_', '/', 1)}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_those_that_are_missing_are_ours(tmp_path: Path) -> None:
    prompts = Prompts.of(folder_of(tmp_path, en_reader="Read!\n", zh_brief="写"))
    assert prompts("reader", "en") == "Read!"
    assert prompts("brief", "zh") == "写"
    assert prompts("reader", "zh") == load_prompt("reader", "zh")
    assert prompts("router", "en") == load_prompt("router", "en")


def test_without_a_folder_all_are_ours() -> None:
    assert Prompts.of(None)("reader", "en") == load_prompt("reader", "en")


def test_files_that_are_no_prompts_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, en_reader="Read!", en_raeder="Read!", xx_reader="?")
    (folder / "notes.txt").write_text("mine")
    (folder / ".DS_Store").write_text("nobody's")
    with pytest.raises(ConfigurationError, match=r"en/raeder\.md, notes\.txt, xx/reader\.md; ther"):
        Prompts.of(folder)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder of prompts at "):
        Prompts.of(tmp_path / "none")


@pytest.mark.slow
def test_a_graph_uses_them(tmp_path: Path, openai_server: OpenAIServer) -> None:
    own = folder_of(
        tmp_path / "prompts",
        en_splitter="Split!",
        en_brief="Brief!",
        en_responder="Reply!",
        en_days="Days!",
    )
    settings = Settings(folder=tmp_path / "sessions", prompts=own, language="en")
    openai_server.otherwise(Reply("Noted."))
    graph = build_session_graph(
        model=open_model("openai:gpt-test", base_url=openai_server.base_url, api_key="none"),
        settings=settings,
    ).compile(checkpointer=InMemorySaver())
    record(graph, thread(), *past("oak"))
    tell(graph, thread(), "What did I say about the oak?", keep=0)
    said = {request["messages"][0]["content"] for request in openai_server.requests}
    assert {"Split!", "Brief!", "Days!\n\nReply!"} <= said
    assert any(text.startswith(load_prompt("reader", "en")) for text in said)
