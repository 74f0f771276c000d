"""Each recipe of its page does what the page says, with a model and a Telegram that are fakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from openai_behaviours import Reply
from openai_server import OpenAIServer

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "recipes.md").read_text("utf-8")


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer) -> Any:
    """Run the block of a section; returns the names that it defines."""
    openai_server.otherwise(Reply("I wrote that down."))
    for name, value in {
        "OPENAI_BASE_URL": openai_server.base_url,
        "OPENAI_API_KEY": "none",
        "TOPICLOOM_FOLDER": str(tmp_path),
        "TELEGRAM_TOKEN": "none",
    }.items():
        monkeypatch.setenv(name, value)

    def run(heading: str) -> dict[str, Any]:
        (section,) = (p for p in re.split(r"^## ", PAGE, flags=re.M) if p.startswith(heading))
        (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        names: dict[str, Any] = {"__name__": "recipe"}
        exec(compile(code, heading, "exec"), names)
        return names

    return run


@pytest.mark.slow
def test_a_session_inside_a_graph_streams_and_is_read_by_the_outer_graph(
    begin: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    begin("A session inside your own graph")
    shown = capsys.readouterr().out
    assert "I wrote that down." in shown
    assert "The boiler leaks. Mr Reyes comes today." in shown


@pytest.mark.slow
def test_a_reply_over_fastapi_is_kept_and_found(begin: Any) -> None:
    client = TestClient(begin("FastAPI")["app"])
    with client.stream("POST", "/chat/ann", json={"text": "Mr Reyes comes today."}) as reply:
        assert "".join(reply.iter_text()) == "I wrote that down."
    assert "Mr Reyes comes today." in client.get("/chat/ann/search?text=Reyes").json()


def test_a_telegram_message_that_comes_twice_is_kept_once(begin: Any) -> None:
    recipe, sent = begin("A Telegram bot"), list[dict[str, Any]]()

    def telegram(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("sendMessage"):
            sent.append(json.loads(request.content))
        update = {"update_id": 7, "message": {"chat": {"id": 4}, "text": "Mr Reyes comes today."}}
        photo = {"update_id": 8, "message": {"chat": {"id": 4}}}
        return httpx.Response(200, json={"ok": True, "result": [update, photo]})

    client = httpx.Client(
        base_url="https://telegram.test/botnone/", transport=httpx.MockTransport(telegram)
    )
    assert recipe["answer_updates"](client, 0) == 9
    assert recipe["answer_updates"](client, 0) == 9
    assert sent == [{"chat_id": 4, "text": "I wrote that down."}] * 2
    state = recipe["graph"].get_state({"configurable": {"thread_id": "telegram-4"}}).values
    assert [m.text for m in state["messages"]].count("Mr Reyes comes today.") == 1


def test_the_nightly_review_names_each_session(
    begin: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    begin("FastAPI")["graph"].invoke(
        {"messages": [("user", "Mr Reyes comes today.")]}, {"configurable": {"thread_id": "ann"}}
    )
    capsys.readouterr()
    begin("Reviews at night")
    assert capsys.readouterr().out.splitlines() == ["ann"]
