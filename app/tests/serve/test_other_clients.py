"""Client libraries that know nothing of topicloom: one talk, as a person has it in any client.

Those that are not dependencies of the tests run with `python scripts/try_integrations.py FOLDER`;
here, they are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
from client_talk import CHAT, CLIENTS, PIXEL, hold
from endpoints import remembered, serving
from openai_behaviours import Behaviour, Call, Drip, Reply
from openai_server import OpenAIServer

from topicloom import FileStorage

SUPPORT = Path(__file__).parents[3] / "tests" / "support"
Talk = list[list[str]]


def answer(numbers: Callable[[], int], request: dict[str, Any]) -> Behaviour:
    """What the model says: no answer twice, slowly where it is asked to, a call where it can."""
    last = request["messages"][-1]
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = " ".join(b["text"] for b in blocks if b["type"] == "text").split("\n")[-1]
    images = sum(b["type"] == "image_url" for b in blocks)
    if last["role"] == "tool":
        return Reply(f"It says {text}.")
    if "weather" in text and request.get("tools"):
        return Reply("Let me see.", tool_calls=[Call("weather_of", {"city": "Oslo"})])
    if "slowly" in text:
        return Drip(0.3, Reply("one, two, three, four, five, six, seven, eight"))
    return Reply(f"Answer {numbers()} to {text} with {images} images")


def check(folder: Path, server: OpenAIServer, hold_talk: Callable[[str], Talk]) -> None:
    """Let a client hold the talk; what it shows is what the session has, and the model knows."""
    numbers = count(1)
    server.otherwise(lambda request: answer(lambda: next(numbers), request))
    with serving(folder, server, heartbeat=5.0) as (url, graph):
        told = hold_talk(url)
        kept = remembered(folder, graph, CHAT)
    assert [[m["role"], m["content"]] for m in kept] == told
    assert told[1][1] == "Answer 2 to Begin. with 0 images"
    assert told[5][1].startswith("one")
    assert told[5][1] != "one, two, three, four, five, six, seven, eight"
    assert [told[9][1], told[11][1]] == ["Let me see.", "It says rain, 4°."]
    assert told[13][1].endswith("with 1 images")
    assert FileStorage(folder).sessions() == [CHAT]
    asked = json.dumps(server.requests[-1]["messages"], ensure_ascii=False)
    assert PIXEL in asked
    for _, text in told[:-1]:
        assert text in asked
    for gone in ("Go left.", "Answer 1 "):
        assert gone not in asked


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CLIENTS if name.startswith("langchain")])
def test_clients_of_langchain_hold_a_conversation(
    tmp_path: Path, openai_server: OpenAIServer, name: str
) -> None:
    check(tmp_path, openai_server, lambda url: hold(CLIENTS[name](url)))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CLIENTS if name.startswith("litellm")])
def test_litellm_holds_a_conversation(
    tmp_path: Path, openai_server: OpenAIServer, name: str
) -> None:
    python = os.environ.get("LITELLM_PYTHON") or skip("LiteLLM")
    script = str(SUPPORT / "client_talk.py")
    check(tmp_path, openai_server, lambda url: run([python, script, name, url]))


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "openai-chat",
        "openai-responses",
        "openai-previous",
        "ai-sdk",
        "ai-sdk-chat",
        "ai-sdk-compatible",
        "ai-sdk-anthropic",
    ],
)
def test_javascript_clients_hold_a_conversation(
    tmp_path: Path, openai_server: OpenAIServer, name: str
) -> None:
    modules = os.environ.get("CLIENT_MODULES") or skip("openai-node and the AI SDK")
    node = shutil.which("node") or skip("Node")
    script = tmp_path / "client_talk.mjs"
    script.write_text((SUPPORT / "client_talk.mjs").read_text("utf-8"), "utf-8")
    (tmp_path / "node_modules").symlink_to(modules)
    folder = tmp_path / "sessions"
    check(folder, openai_server, lambda url: run([node, str(script), name, url]))


def skip(what: str) -> NoReturn:
    """Skip, so that it is seen."""
    pytest.skip(f"{what} NOT TESTED here: python scripts/try_integrations.py FOLDER")


def run(command: list[str]) -> Talk:
    """What a program printed of the talk that it held."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "ANTHROPIC_"))}
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "AI_SDK_LOG_WARNINGS": "false"},
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    told: Talk = json.loads(ran.stdout.splitlines()[-1])
    return told
