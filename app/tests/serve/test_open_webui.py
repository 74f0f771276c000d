"""Open WebUI's own server before the endpoint: what its page has it do, and what is in the session.

`python scripts/try_integrations.py FOLDER open-webui` runs it; here, it is skipped where it is not
installed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from client_talk import PIXEL
from endpoints import Message, remembered, serving
from openai_behaviours import Behaviour, Drip, Reply
from openai_server import OpenAIServer
from servers import free_port, running

from topicloom import FileStorage
from topicloom_app.serve.histories import SIDE_SUFFIX

TASKS = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}
SLOWLY = "one, two, three, four, five, six, seven, eight"


@dataclass
class Page:
    """What Open WebUI's page does: it keeps a tree of messages, and sends its newest branch."""

    http: httpx.Client
    chat: str = ""
    messages: dict[str, Any] = field(default_factory=dict)

    def say(
        self,
        text: str,
        parent: str | None = None,
        image: str = "",
        until: Callable[[], bool] | None = None,
    ) -> str:
        """Say something behind an answer; returns the id of the answer to it."""
        id_ = str(uuid4())
        files = [{"type": "image", "url": f"data:image/png;base64,{image}"}] if image else []
        message: Message = {"id": id_, "parentId": parent, "childrenIds": [], "role": "user"}
        self.messages[id_] = {**message, "content": text, "files": files, "timestamp": 1}
        return self.answer(id_, until)

    def answer(self, asked: str, until: Callable[[], bool] | None = None) -> str:
        """Have a message answered, once more if it was; returns the id of the answer.

        With `until`, it is stopped as soon as that is true.
        """
        id_, user = str(uuid4()), self.messages[asked]
        given = {
            "model": "topicloom",
            "stream": True,
            "messages": self.list_branch(asked),
            "user_message": user,
            "parent_id": user["parentId"],
            "id": id_,
            "session_id": "page",
            "background_tasks": dict(TASKS),
            **({"chat_id": self.chat} if self.chat else {}),
        }
        begun = self.http.post("/api/chat/completions", json=given).raise_for_status().json()
        self.chat = self.chat or begun["chat_id"]
        tasks = begun.get("task_ids") or [begun["task_id"]]

        def shown() -> dict[str, Any]:
            chat = self.http.get(f"/api/v1/chats/{self.chat}").raise_for_status().json()
            found: dict[str, Any] = chat["chat"]["history"]["messages"].get(id_, {})
            return found

        if until:
            wait_for(until)
            for task in tasks:
                self.http.post(f"/api/tasks/stop/{task}").raise_for_status()
        wait_for(lambda: bool(shown().get("done" if until is None else "content")))
        self.messages[id_] = shown()
        return id_

    def list_branch(self, last: str | None) -> list[Message]:
        """The messages up to one, as they are sent."""
        found: list[Message] = []
        while last:
            message = self.messages[last]
            content: Any = message["content"]
            if files := message.get("files"):
                images = [{"type": "image_url", "image_url": {"url": f["url"]}} for f in files]
                content = [{"type": "text", "text": content}, *images]
            found.insert(0, {"role": message["role"], "content": content})
            last = message["parentId"]
        return found


def wait_for(there: Callable[[], bool]) -> None:
    for _ in range(1_200):
        if there():
            return
        time.sleep(0.1)
    pytest.fail("it did not come in two minutes")


@contextmanager
def open_webui(folder: Path, url: str) -> Iterator[httpx.Client]:
    """A client of a server of Open WebUI's whose only model is the endpoint's."""
    command = os.environ.get("OPEN_WEBUI")
    if not command:
        pytest.skip("Open WebUI NOT TESTED here: python scripts/try_integrations.py FOLDER")
    folder.mkdir()
    base = f"http://127.0.0.1:{(port := free_port())}"
    environment = {
        "DATA_DIR": str(folder),
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "none",
        "OPENAI_API_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "ENABLE_OLLAMA_API": "False",
        "ENABLE_REALTIME_CHAT_SAVE": "True",
        "ENABLE_FORWARD_USER_INFO_HEADERS": "True",
        "ENABLE_VERSION_UPDATE_CHECK": "False",
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",
        "ANONYMIZED_TELEMETRY": "False",
    }
    serve = [command, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (
        running(serve, f"{base}/health", folder / "log", environment),
        httpx.Client(base_url=base, timeout=60) as http,
    ):
        signed = http.post("/api/v1/auths/signin", json={"email": "", "password": ""})
        http.headers["Authorization"] = f"Bearer {signed.raise_for_status().json()['token']}"
        yield http


@pytest.mark.slow
def test_what_its_page_does(tmp_path: Path, openai_server: OpenAIServer) -> None:
    numbers, lock, counting = count(1), threading.Lock(), threading.Event()

    def answer(request: dict[str, Any]) -> Behaviour:
        content = request["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        if "### Task" in text:
            return Reply('{"title": "A talk", "tags": ["talk"], "follow_ups": ["What else?"]}')
        if text.endswith("Count slowly."):
            threading.Timer(1.2, counting.set).start()
            return Drip(0.3, Reply(SLOWLY))
        with lock:
            return Reply(f"Answer {next(numbers)}")

    openai_server.otherwise(answer)
    folder = tmp_path / "sessions"
    with (
        serving(folder, openai_server, per_minute=100_000) as (url, graph),
        open_webui(tmp_path / "webui", url) as http,
    ):
        page = Page(http)
        given_up = page.say("Begin.")
        first = page.answer(page.messages[given_up]["parentId"])
        page.say("Go left.", first)
        edited = page.say("Go right.", first)
        seen = page.say("What is on it?", edited, image=PIXEL)
        stopped = page.say("Count slowly.", seen, until=lambda: counting.wait(0.1))
        last = page.say("Go on.", stopped)
        title = http.get(f"/api/v1/chats/{page.chat}").json()["title"]
        sent = [m["content"] for m in page.list_branch(last)]
        shown = [c if isinstance(c, str) else c[0]["text"] for c in sent]
        kept = [m["content"] for m in remembered(folder, graph, page.chat)]
    assert title == "A talk"
    assert kept == shown
    assert shown[:4] == ["Begin.", "Answer 2", "Go right.", "Answer 4"]
    assert shown[7].startswith("one")
    assert shown[7] != SLOWLY
    assert set(FileStorage(folder).sessions()) == {page.chat, page.chat + SIDE_SUFFIX}
