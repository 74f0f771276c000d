"""The memory over HTTP: it says and does what `Memory` does, and its document says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from endpoints import Talk, listening, open_client, talking
from fastapi.openapi.models import OpenAPI
from langchain_core.messages import AIMessageChunk
from langgraph.store.memory import InMemoryStore
from sessions import chatter, open_graph, tell
from tables import each_row

from topicloom import Memory, ReplyRequest
from topicloom.hosting import name_thread
from topicloom.testing import Clock, ScriptedResponder, fake_roles
from topicloom_app import make_endpoint

ANN = {"X-Topicloom-User": "ann", "X-Topicloom-Scope": "garden"}
TEXTS = [chatter(tag, n) for tag in ("茶", "山") for n in range(3)]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A chat of one key, `c1`, whose messages are in topics; the other key may name users."""
    with talking(tmp_path, keys={"ann": "none", "app": "other"}, trusted=["app"]) as opened:
        tell(opened.graph, name_thread("ann.c1"), *TEXTS, keep=0)
        yield opened


def send(
    talk: Talk,
    method: str,
    path: str,
    *,
    key: str = "none",
    user: dict[str, str] | None = None,
    **options: Any,
) -> Any:
    """What a request is answered; an error as its status and its message."""
    headers = {"Authorization": f"Bearer {key}", **(user or {})}
    url = f"{talk.url}/memory{path}"
    answer = httpx.request(method, url, headers=headers, timeout=30, **options)
    if answer.is_success:
        return answer.json()
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status_code, error["message"]


def get(talk: Talk, path: str, **options: Any) -> Any:
    return send(talk, "GET", path, **options)


def change(talk: Talk, do: str, **given: Any) -> Any:
    return send(talk, "POST", "/threads/c1/changes", json={"do": do, **given})


@pytest.mark.slow
def test_it_shows_what_memory_shows(talk: Talk) -> None:
    memory = Memory.of(talk.graph, name_thread("ann.c1"))
    topics = memory.topics()
    assert get(talk, "/threads") == [get(talk, "/threads/c1")] == [get(talk, "/threads/ann.c1")]
    assert get(talk, "/threads/c1") == {
        "thread": "ann.c1",
        "messages": 12,
        "turns": 6,
        "first_unsplit": f"m{memory.session().tail}",
    }
    assert get(talk, "/threads/c1/topics") == [t.model_dump(mode="json") for t in topics]
    assert get(talk, f"/threads/c1/topics/{topics[0].id}")["full_name"] == topics[0].full_name
    held = [m.id for m in topics[0].messages()]
    pages = f"/threads/c1/topics/{topics[0].id}/messages"
    first = get(talk, pages, params={"limit": 2})
    second = get(talk, pages, params={"after": first[-1]["id"]})
    assert [m["id"] for m in first + second] == held
    found = get(talk, "/threads/c1/search", params={"text": "茶", "limit": 3})
    assert [(h["message"]["id"], h["topic"]) for h in found] == [
        (h.message.id, h.topic) for h in memory.search("茶", limit=3)
    ]
    assert get(talk, "/threads/c1/messages/m1")["text"] == TEXTS[0]
    assert [m["id"] for m in get(talk, "/threads/c1/messages", params={"before": "m5"})] == [
        "m1",
        "m2",
        "m3",
        "m4",
    ]
    assert [m["role"] for m in get(talk, "/threads/c1/prompt")] == [m.type for m in memory.prompt()]
    assert get(talk, "/threads/c1/receipts", params={"newest": 1}) == [
        memory.receipts(1)[0].model_dump(mode="json")
    ]
    assert get(talk, "/threads/c1/turns/6/why-not/m1")["step"] == memory.why_not(6, "m1").step
    assert sorted(
        m["id"] for ms in get(talk, "/threads/c1/unsplit").values() for m in ms
    ) == sorted(m.id for ms in memory.provisional().values() for m in ms)
    assert [row["text"] for row in get(talk, "/threads/c1/export")][::2] == TEXTS
    for path in ("facts", "fact-spans", "changes"):
        assert not get(talk, f"/threads/c1/{path}")


@pytest.mark.slow
def test_it_changes_what_memory_changes(talk: Talk) -> None:
    topic = get(talk, "/threads/c1/topics")[0]["id"]
    renamed = change(talk, "rename", topic=topic, name="Tea")
    assert (renamed["topic"]["name"], renamed["fact"], renamed["undone"]) == ("Tea", None, None)
    assert change(talk, "undo")["undone"]["event"].startswith("ann: ")
    assert [c["undone"] for c in get(talk, "/threads/c1/changes")] == [True, False]
    assert get(talk, f"/threads/c1/topics/{topic}")["name"] != "Tea"


@pytest.mark.slow
def test_what_is_forgotten_is_gone(talk: Talk) -> None:
    asked = {"what": ["m1-m2"], "dry_run": True}
    would = send(talk, "POST", "/threads/c1/forget", json=asked)
    assert would["messages"][0]["text"] == TEXTS[0] == get(talk, "/threads/c1/messages/m1")["text"]
    done = send(talk, "POST", "/threads/c1/forget", json={"what": ["m1-m2"]})
    assert done["messages"] == would["messages"]
    assert get(talk, "/threads/c1/messages/m1")["text"] == "(removed on request)"
    assert send(talk, "DELETE", "/threads/c1") is None
    assert get(talk, "/threads/c1")[0] == 404
    assert get(talk, "/threads") == []


class WaitingResponder(ScriptedResponder):
    """Says `Lake.`; the second time, not before it is told to."""

    def __init__(self) -> None:
        super().__init__(otherwise="Lake.")
        self.begun, self.told = Event(), Event()

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        if self.requests:
            self.begun.set()
            assert await asyncio.to_thread(self.told.wait, 30)
        async for chunk in super().astream(request):
            yield chunk


@pytest.mark.slow
def test_a_change_comes_behind_the_turn_that_runs(tmp_path: Path) -> None:
    responder, answers = WaitingResponder(), list[Any]()
    graph = open_graph(tmp_path, fake_roles(responder))
    with listening(make_endpoint(graph)) as url, open_client(url) as client:
        talk = Talk(tmp_path, graph, responder, client, [], url)
        begun = talk.ask([], "We went to the lake.", user="c1")
        body: Any = {"json": {"what": ["m3"]}}
        turn = Thread(target=talk.ask, args=(begun, "The secret is Tom."), kwargs={"user": "c1"})
        forget = Thread(
            target=lambda: answers.append(send(talk, "POST", "/threads/c1/forget", **body))
        )
        turn.start()
        assert responder.begun.wait(30)
        forget.start()
        forget.join(0.5)
        responder.told.set()
        turn.join()
        forget.join()
        assert [m["text"] for m in answers[0]["messages"]] == ["The secret is Tom."]
        texts = [m["text"] for m in get(talk, "/threads/c1/messages")]
    assert texts == ["We went to the lake.", "Lake.", "(removed on request)", "Lake."]


@pytest.mark.slow
def test_a_trusted_key_reads_and_deletes_what_is_kept_of_a_user(talk: Talk) -> None:
    graph, name = talk.graph, "app.garden-chat"
    config = name_thread(name)
    config["configurable"] |= {"user_id": "app.ann", "scope": "garden"}
    tell(graph, config, "茶：一")
    ann: Any = {"key": "other", "user": ANN}
    assert [t["thread"] for t in get(talk, "/threads", **ann)] == [name]
    assert [t["thread"] for t in get(talk, "/user/threads", **ann)] == [name]
    assert {row["kind"] for row in get(talk, "/user/export", **ann)} == {"thread", "message"}
    assert get(talk, "/user/facts", **ann) == []
    assert get(talk, "/threads", key="other") == []
    assert get(talk, f"/threads/{name}", key="other")[0] == 404
    assert get(talk, "/user/threads", key="other") == (400, "name the user: '' is nobody")
    assert send(talk, "DELETE", "/user", **ann)["threads"] == 1
    assert get(talk, f"/threads/{name}", **ann)[0] == 404


@pytest.mark.slow
def test_a_user_has_a_time_zone_that_is_kept(tmp_path: Path) -> None:
    """It goes before the zone of the key that speaks for the user."""
    clock = Clock()
    clock.now = datetime(2026, 7, 1, 23, 30, tzinfo=UTC)
    graph = open_graph(tmp_path, clock=clock, store=InMemoryStore())
    zones = {"app": "America/New_York"}
    made = make_endpoint(graph, keys={"app": "other"}, trusted=["app"], timezones=zones)
    with listening(made) as url, open_client(url, "other") as client:
        talk = Talk(tmp_path, graph, ScriptedResponder(), client, [], url)
        ann: Any = {"key": "other", "user": ANN}
        assert get(talk, "/user/timezone", **ann) == {"timezone": ""}
        told = {"timezone": "Asia/Kolkata"}
        assert send(talk, "POST", "/user/timezone", json=told, **ann) == told
        for user, day in ((ANN, "2026-07-02"), (ANN | {"X-Topicloom-User": "bob"}, "2026-07-01")):
            body = {"model": "topicloom", "messages": [{"role": "user", "content": "茶：一"}]}
            headers = {"Authorization": "Bearer other", **user}
            httpx.post(f"{url}/chat/completions", json=body, headers=headers)
            (thread,) = get(talk, "/threads", key="other", user=user)
            said = get(talk, f"/threads/{thread['thread']}/messages", key="other", user=user)
            assert said[0]["time"].startswith(day)
        wrong = send(talk, "POST", "/user/timezone", json={"timezone": "Paris"}, **ann)
        assert wrong[0] == 400
        assert "Europe/Paris" in wrong[1]


@pytest.mark.slow
def test_a_chat_of_a_user_has_the_name_that_its_client_gave(talk: Talk) -> None:
    body = {"model": "topicloom", "messages": [{"role": "user", "content": "茶：一"}]}
    headers = {"Authorization": "Bearer other", "X-Chat-Id": "c/1", **ANN}
    httpx.post(f"{talk.url}/chat/completions", json=body, headers=headers).raise_for_status()
    ann: Any = {"key": "other", "user": ANN}
    (listed,) = get(talk, "/threads", **ann)
    assert get(talk, f"/threads/{listed['thread']}", **ann) == listed
    headers["X-Chat-Id"] = "c1"
    httpx.post(f"{talk.url}/chat/completions", json=body, headers=headers).raise_for_status()
    assert get(talk, "/threads/c1/messages", **ann)[0]["text"] == "茶：一"


@pytest.mark.slow
@each_row(
    ("method", "path", "options", "status", "says"),
    [
        ("GET", "/threads/c2", {}, 404, "there is no thread 'c2' here"),
        ("GET", "/threads/c1", {"key": "wrong"}, 401, "this key is not known here"),
        ("GET", "/threads/c1", {"user": ANN}, 403, "may say who is talking"),
        ("GET", "/threads/c1/topics/t99", {}, 400, "no topic 't99' (there: t1 to"),
        ("GET", "/threads/c1/messages/m99", {}, 400, "no message 'm99' (there: m1 to m12)"),
        ("GET", "/threads/c1/search", {}, 400, "text: Field required"),
        ("GET", "/threads/c1/search?text=a&limt=3", {}, 400, "limt: Extra inputs"),
        ("GET", "/threads/c1/messages?limit=0", {}, 400, "limit: Input should be greater"),
        ("GET", "/threads/c1/facts?at=May", {}, 400, "at: Input should be a valid date"),
        ("POST", "/threads/c1/forget", {"json": {"what": []}}, 400, "body.what: "),
        ("POST", "/threads/c1/forget", {"content": "what"}, 415, "send application/json"),
        ("POST", "/threads/c1/changes", {"json": {"do": "burn"}}, 400, "body: Input tag 'burn'"),
        ("POST", "/threads/c1/changes", {"json": {"do": "undo"}}, 400, "nothing"),
        ("PUT", "/threads/c1", {}, 405, "Method Not Allowed"),
    ],
)
def test_an_error_says_what_is_wrong(
    talk: Talk, method: str, path: str, options: Any, status: int, says: str
) -> None:
    answered = send(talk, method, path, **options)
    assert answered[0] == status
    assert says in answered[1]


@pytest.mark.slow
def test_its_document_is_one_of_openapi(talk: Talk) -> None:
    described = httpx.get(f"{talk.url.removesuffix('/v1')}/openapi.json").json()
    OpenAPI.model_validate(described)
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert len(operations) == 25
    for operation in operations:
        assert operation["summary"]
