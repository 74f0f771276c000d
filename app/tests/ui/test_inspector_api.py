"""The inspector's API: who is answered, what is only read, what is changed, how a turn streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from shutil import copytree
from threading import Event
from typing import Any

import httpx
import pytest
from inspected import HOSTILE, NAME, THREAD, inspect, open_folder
from langchain_core.messages import AIMessageChunk, HumanMessage, RemoveMessage
from people import People
from pydantic import TypeAdapter

from topicloom import (
    Fact,
    FactChanges,
    FileStorage,
    Memory,
    ReflectionStore,
    ReplyRequest,
    Settings,
    TurnOptions,
    build_session_graph,
    local_checkpointer,
)
from topicloom.hosting import REMOVED, CompiledSessionGraph, name_thread
from topicloom.search.embedder import Vectors
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_app.session_names import make_session_name
from topicloom_app.ui.answers import PageEvent

BASE = "http://127.0.0.1:8322"
SESSION = f"/api/session/{NAME}"
EVENTS = TypeAdapter[PageEvent](PageEvent)


def open_client(graph: CompiledSessionGraph, *, editing: bool = False) -> httpx.AsyncClient:
    app = inspect(graph, editing=editing)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE)


@pytest.fixture
async def page(graph: CompiledSessionGraph) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(graph) as client:
        assert (await client.get("/?key=secret")).status_code == 200
        yield client


async def get(page: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await page.get(SESSION + path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def change(page: httpx.AsyncClient, **what: Any) -> httpx.Response:
    return await page.post(f"{SESSION}/changes", json=what)


@pytest.mark.slow
async def test_nobody_is_answered_without_the_key(graph: CompiledSessionGraph) -> None:
    async with open_client(graph) as client:
        for path in (
            "/",
            "/?key=wrong",
            "/static/app.js",
            "/api/session",
            "/api/session?key=secret",
        ):
            assert (await client.get(path)).status_code == 401
        opened = await client.get("/?key=secret")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "secret" not in cookie
        assert "script-src 'self';" in opened.headers["content-security-policy"]
        assert "unsafe" not in opened.headers["content-security-policy"]
        assert (await client.get("/api/session")).json()["count"] == 28


@pytest.mark.slow
async def test_other_sites_and_names_are_refused(page: httpx.AsyncClient) -> None:
    evil = {"host": "rebound.example:8322"}
    assert (await page.get("/api/session", headers=evil)).status_code == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        answer = await page.post("/api/editing", json={"on": True}, headers={"origin": origin})
        assert answer.status_code == 403
    plain = {"content-type": "text/plain"}
    sent = await page.post("/api/editing", content='{"on": true}', headers=plain)
    assert sent.status_code == 415
    own = await page.post("/api/editing", json={"on": True}, headers={"origin": BASE})
    assert own.json() == {"on": True}


async def test_nothing_is_written_until_editing_is_on(
    page: httpx.AsyncClient, graph: CompiledSessionGraph
) -> None:
    before = Memory.of(graph, THREAD).session()
    body = {"do": "rename", "topic": "t1", "name": "House"}
    for path, sent in (
        ("/changes", body),
        ("/forget", {"what": ["m1"]}),
        ("/turns", {"text": "Hello"}),
    ):
        answer = await page.post(SESSION + path, json=sent)
        assert (answer.status_code, "editing" in answer.json()["error"]) == (403, True)
    shown = (await page.post(f"{SESSION}/preview", json={"what": ["m1-m2"]})).json()
    assert [m["id"] for m in shown["messages"]] == ["m1", "m2"]
    assert Memory.of(graph, THREAD).session() == before
    await page.post("/api/editing", json={"on": True})
    assert (await change(page, **body)).status_code == 200
    assert Memory.of(graph, THREAD).topic("t1").name == "House"


@pytest.mark.slow
async def test_pages_topics_and_search(page: httpx.AsyncClient) -> None:
    newest = await get(page, "/messages", limit=4)
    assert [m["id"] for m in newest] == ["m25", "m26", "m27", "m28"]
    assert [m["topic"] for m in newest] == ["t3", "t3", "", ""]
    earlier = await get(page, "/messages", limit=4, before="m25")
    assert [m["seq"] for m in earlier] == [21, 22, 23, 24]
    around = await get(page, "/messages", limit=6, around="m13")
    assert 13 in [m["seq"] for m in around]
    topics = {t["id"]: t for t in await get(page, "/topics")}
    assert [t["count"] for t in topics.values()] == [12, 12, 2]
    assert topics["t3"]["count"] == 2
    assert (await get(page, "/days"))["t3"] == {"2026-03-25": 2}
    assert [m["id"] for m in await get(page, "/topics/t2", after="m22")] == ["m23", "m24"]
    found = await get(page, "/search", text="9 kilometres")
    assert found[0]["id"] == "m17"
    closest = await get(page, "/search", text="gout")
    assert [m["relevance"] for m in closest] == [0.0] * len(closest), "closest in meaning only"
    receipt = await get(page, "/receipts/m27")
    assert receipt["user"] == "m27"
    assert receipt["topics"]["t3"]["count"] == 2
    assert 0 < receipt["topics"]["t3"]["fill"] < 1
    turn = await get(page, "/grounds/m27")
    assert (turn["asked"]["id"], turn["reply"]["id"]) == ("m27", "m28")
    assert [(g["id"], g["place"]) for g in turn["grounds"] if g["says"]] == [("m25", "quoted")]
    assert (await get(page, "/grounds/m3"))["grounds"] == []
    assert receipt["sections"]
    assert await get(page, "/receipts/m3") is None
    assert [mark["message"] for mark in await get(page, "/marks")][-1] == "m27"


async def test_a_turn_says_what_became_of_a_message_and_a_case_is_made_of_it(
    page: httpx.AsyncClient,
) -> None:
    turn = (await get(page, "/receipts/m27"))["turn"]
    assert (await get(page, f"/absences/{turn}/m25"))["step"] == "quoted"
    assert (await get(page, f"/absences/{turn}/m27"))["step"] == "in_view"
    assert (await page.get(f"{SESSION}/absences/99/m1")).status_code == 400
    case = await page.get(f"{SESSION}/cases/{turn}/m25")
    assert case.headers["content-disposition"].startswith("attachment")
    made = case.json()
    assert len(made["messages"]) == 26
    assert made["questions"][0]["question"] == "When does the ferry leave?"
    assert made["questions"][0]["evidence"] == ["m25"]


@pytest.mark.slow
async def test_changes_are_made_and_undone(graph: CompiledSessionGraph) -> None:
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        memory = Memory.of(graph, THREAD)
        for what in (
            {"do": "move", "topic": "t2", "messages": "m1-m2"},
            {"do": "split", "topic": "t1", "messages": "m11-m12", "name": "Oak"},
            {"do": "pin", "topic": "t1", "pinned": True},
            {"do": "archive", "topic": "t3"},
            {"do": "restore", "topic": "t3"},
            {"do": "merge", "topic": "t4", "into": "t1"},
        ):
            assert (await change(page, **what)).status_code == 200, what
        assert [t.count for t in memory.topics()] == [10, 14, 2]
        events = await get(page, "/changes")
        assert len(events) == 6
        assert events[0]["author"] == "user"
        for entry in events:
            answer = await change(page, do="undo", change=entry["id"])
            assert answer.status_code == 200, answer.text
        assert [t.count for t in memory.topics()] == [12, 12, 2]


async def test_mistakes_are_named(graph: CompiledSessionGraph) -> None:
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        for what, said in (
            ({"do": "explode", "topic": "t1"}, "explode"),
            ({"do": "rename", "topic": "t9", "name": "x"}, "no topic 't9'"),
            ({"do": "move", "topic": "t1", "messages": "../etc"}, "no message"),
        ):
            answer = await change(page, **what)
            assert (answer.status_code, said in answer.json()["error"]) == (400, True), answer.text
        assert (await page.get("/api/session/other/topics")).status_code == 404
        assert (await page.get(f"{SESSION}/messages/m99")).status_code == 400
        assert (await page.get(f"{SESSION}/messages?before=x")).status_code == 400
        assert (await page.get(f"{SESSION}/topics/t1?after=x")).status_code == 400
        for limit, named in (("0", "limit='0'"), ("-1", "limit='-1'"), ("many", "limit='many'")):
            for path in ("/messages", "/topics/t1"):
                answer = await page.get(SESSION + path, params={"limit": limit})
                said = f"{named} cannot be used"
                assert (answer.status_code, said in answer.text) == (400, True), answer.text
        for path in ("receipts/x", "receipts/m-1", "receipts/%00", "absences/-1/m1", "cases/x/m1"):
            answer = await page.get(f"{SESSION}/{path}")
            assert (answer.status_code, "error" in answer.json()) == (400, True), path
        for path in (
            "receipts/m{}",
            "absences/{}/m1",
            "topics/t{}",
            "messages?before=m{}",
            "topics/t1?limit={}",
        ):
            answer = await page.get(f"{SESSION}/{path.format('1' * 5_000)}")
            assert answer.status_code == 400, path
        assert len(await get(page, "/messages", limit=999_999_999)) == 28
        empty = await page.post(f"{SESSION}/preview", headers={"content-type": "application/json"})
        assert empty.json()["error"].startswith("Invalid JSON")
        large = await page.post(f"{SESSION}/turns", json={"text": "x" * 1_100_000})
        assert large.status_code == 413


@pytest.mark.slow
async def test_a_turn_streams_and_long_texts_are_cut(graph: CompiledSessionGraph) -> None:
    moved = TurnOptions(answer=False, keep_messages=0)  # so that the notes begin anew
    graph.invoke({"messages": [HumanMessage("And?")]}, THREAD, context=moved)
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        answer = await page.post(
            f"{SESSION}/turns", json={"text": "How many kilometres did I run?"}
        )
        events = [json.loads(e[6:]) for e in answer.text.split("\n\n") if e]
        for event in events:
            EVENTS.validate_python(event)
        kinds = [event["type"] for event in events]
        assert kinds[-2:] == ["receipt", "end"]
        assert {"text", "reading", "read", "quoted"} <= set(kinds)
        said = "".join(event.get("text", "") for event in events)
        shown = await get(page, "/messages", limit=2)
        assert [m["text"] for m in shown] == ["How many kilometres did I run?", said]
        await page.post(f"{SESSION}/turns", json={"text": HOSTILE[-1], "answer": False})
        (cut,) = await get(page, "/messages", limit=1)
        assert (len(cut["text"]), cut["whole"]) == (20_000, False)
        assert (await get(page, f"/messages/{cut['id']}"))["text"] == HOSTILE[-1]


async def test_a_moment_is_shown_a_branch_begins_there_and_a_prompt_is_whole(
    graph: CompiledSessionGraph,
) -> None:
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        now, before = await get(page, "/moments")
        assert (now["parent"], now["count"], before["count"]) == (before["id"], 28, 26)
        assert await get(page, "/topics", at=before["id"]) == []
        assert len(await get(page, "/messages", at=before["id"])) == 26
        prompt = await get(page, "/prompt")
        assert "m25" in "".join(part["text"] for part in prompt)
        assert prompt[0]["role"] == "system"
        assert (await page.post(f"{SESSION}/forks?at={before['id']}", json={})).json() is None
        assert (await get(page, ""))["count"] == 26
        for begin in ("/forks?at=x", "/turns?at=%00"):  # LangGraph would begin an empty branch
            answer = await page.post(SESSION + begin, json={"text": "Lost"})
            assert (answer.status_code, "no moment" in answer.text) == (404, True)
        assert (await page.get(f"{SESSION}/topics?at=x")).status_code == 404
        branch = (await get(page, "/moments"))[0]
        assert branch["parent"] == before["id"]
        await page.post(f"{SESSION}/turns", json={"text": "Another way", "answer": False})
        assert [m["count"] for m in await get(page, "/moments")] == [27, 26, 28, 26]
        assert len(await get(page, "/topics", at=now["id"])) == 3


async def test_a_turn_is_stopped_and_its_message_is_replied_to_later(tmp_path: Path) -> None:
    slow = SlowReply()
    roles = fake_roles(slow)
    settings = Settings(folder=tmp_path, fsync=False)
    saver = local_checkpointer(tmp_path)
    graph = build_session_graph(settings=settings, roles=roles).compile(checkpointer=saver)
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        said = {"text": "How are you?"}
        turn = asyncio.create_task(page.post(f"{SESSION}/turns", json=said))
        await asyncio.to_thread(slow.asked.wait, 30)
        await page.post(f"{SESSION}/stop", json={})
        assert '{"type":"end","stopped":true}' in (await turn).text.replace(" ", "")
        assert len(await get(page, "/messages")) == 1
        slow.go_on.set()
        again = await page.post(f"{SESSION}/turns", json={"text": ""})
        assert '"stopped":false' in again.text.replace(" ", "")
        assert [m["text"] for m in await get(page, "/messages")] == ["How are you?", "Well."]
    saver.close()


class SlowReply(ScriptedResponder):
    """Replies once it may."""

    def __init__(self) -> None:
        super().__init__(otherwise="Well.")
        self.asked, self.go_on = Event(), Event()

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        self.asked.set()
        while not self.go_on.is_set():
            await asyncio.sleep(0.01)
        async for chunk in super().astream(request):
            yield chunk


async def test_an_export_becomes_a_session_and_a_session_a_page(
    graph: CompiledSessionGraph,
) -> None:
    talk = {"id": "c", "messages": [{"role": "user", "content": "<b>我 met Ann 12</b>"}]}
    octets = {"content-type": "application/octet-stream"}
    said = json.dumps([{"type": "human", "data": m} for m in talk["messages"]]).encode()
    async with open_client(graph) as page:
        await page.get("/?key=secret")
        path = "/api/session/Old talk/imports"
        assert (await page.post(path, content=said, headers=octets)).status_code == 403
        await page.post("/api/editing", json={"on": True})
        assert (await page.post(path, json={})).status_code == 415
        no_json = await page.post(path, content=b"\x00", headers=octets)
        assert no_json.status_code == 400
        for _ in range(2):  # the second time there is nothing new
            taken = await page.post(path, content=said, headers=octets)
            events = [json.loads(e[6:]) for e in taken.text.split("\n\n") if e]
        assert [e["type"] for e in events] == ["end"]
        name = make_session_name("Old talk")
        (message,) = (await page.get(f"/api/session/{name}/messages")).json()
        assert message["text"] == "<b>我 met Ann 12</b>"
        shown = await page.get(f"/api/session/{name}/page")
        assert "&lt;b&gt;我 met Ann 12" in shown.text
        hidden = await page.get(f"/api/session/{name}/page?hide=1")
        assert "&lt;x&gt;字 xxx xxx 00" in hidden.text


@pytest.mark.slow
async def test_an_import_brings_nothing_back(graph: CompiledSessionGraph) -> None:
    said = [{"type": "human", "id": f"h{n}", "content": f"tea: remark {n}"} for n in range(4)]
    octets = {"content-type": "application/octet-stream"}
    name = make_session_name("Old")
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        for count in (2, 2, 3):
            body = json.dumps(said[:count]).encode()
            await page.post("/api/session/Old/imports", content=body, headers=octets)
            await page.post(f"/api/session/{name}/forget", json={"what": ["m1"]})
        shown = (await page.get(f"/api/session/{name}/messages")).json()
        texts = [REMOVED, "tea: remark 1", "tea: remark 2"]
        assert [m["text"] for m in shown] == texts
        graph.update_state(name_thread(name), {"messages": [RemoveMessage("h1")]})
        for _ in range(2):
            body = json.dumps(said).encode()
            await page.post("/api/session/Old/imports", content=body, headers=octets)
        shown = (await page.get(f"/api/session/{name}/messages")).json()
        assert [m["text"] for m in shown] == [REMOVED, "tea: remark 2", "tea: remark 3"]


async def test_an_export_is_shown_before_it_is_taken_in(graph: CompiledSessionGraph) -> None:
    said = [{"type": "human", "content": "tea"}, {"type": "system", "content": "x"}, {"type": "x"}]
    octets = {"content-type": "application/octet-stream"}
    path, body = "/api/session/Old/imports", json.dumps(said).encode()
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        before = (await page.get("/api/session")).json()["sessions"]
        for new in (1, 0):
            shown = await page.post(f"{path}?dry_run=1", content=body, headers=octets)
            told = shown.json()
            assert (told["conversations"], told["recorded"]) == (1, new)
            assert told["formats"] == {"langchain": 1}
            assert told["left_out"] == {"instructions and settings": 1}
            (row,) = told["not_understood"]
            assert (row["what"], row["count"]) == ("messages of another form", 1)
            assert "message 3" in row["example"]
            if new:
                assert (await page.get("/api/session")).json()["sessions"] == before
            taken = await page.post(path, content=body, headers=octets)
            assert '"error"' not in taken.text
        none = await page.post(path, content=b'[{"type": "x"}]', headers=octets)
        assert none.status_code == 400
        assert "nothing can be imported: it has 'type'" in none.json()["error"]


@pytest.mark.slow
async def test_a_small_export_is_in_topics_too(graph: CompiledSessionGraph) -> None:
    said = [
        {"type": kind, "data": {"id": f"{kind}{n}", "content": f"{tag}: remark {n} on {tag}."}}
        for n, tag in enumerate(["tea", "tea", "rain", "rain"])
        for kind in ("human", "ai")
    ]
    octets = {"content-type": "application/octet-stream"}
    async with open_client(graph) as page:
        await page.get("/?key=secret")
        await page.post("/api/editing", json={"on": True})
        path = "/api/session/Small/imports"
        taken = await page.post(path, content=json.dumps(said).encode(), headers=octets)
        assert '"end"' in taken.text
        name = make_session_name("Small")
        topics = (await page.get(f"/api/session/{name}/topics")).json()
        assert sum(topic["count"] for topic in topics) == 8


async def test_other_thresholds_are_tried_on_the_turns(page: httpx.AsyncClient) -> None:
    tried = await get(page, "/replay", base=0.95, step=0, floor=0)
    (in_force, now), (policy, then) = tried["in_force"], tried["policy"]
    assert (in_force["base"], policy["base"]) == (0.2, 0.95)
    assert (now["read"], now["missed"]) == (2, 0), "the ferry is a loose end, which nobody reads"
    assert then["read"] < 2
    assert then["missed"] == now["quoted"] - then["quoted"]
    refused = await page.get(f"{SESSION}/replay", params={"floor": 50})
    assert "floor <= usual" in refused.json()["error"]


async def test_facts_are_confirmed_corrected_and_forgotten(graph: CompiledSessionGraph) -> None:
    assert graph.store is not None
    kept = ReflectionStore(graph.store)
    kept.change_facts(NAME, FactChanges((Fact("Likes oak", ("m1",), "2026-03-01"),)))
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        ((key, _),) = (await get(page, "/facts")).items()
        assert (await change(page, do="correct_fact", key=key, text="Likes ash")).status_code == 200
        ((new, fact),) = (await get(page, "/facts")).items()
        assert (new != key, fact["text"], fact["messages"]) == (True, "Likes ash", ["m1"])
        assert (await change(page, do="forget_fact", key=key)).status_code == 400
        assert (await change(page, do="forget_fact", key=new)).status_code == 200
        assert await get(page, "/facts") == {}


async def test_what_is_forgotten_is_gone(graph: CompiledSessionGraph) -> None:
    async with open_client(graph, editing=True) as page:
        await page.get("/?key=secret")
        gone = (await page.post(f"{SESSION}/forget", json={"what": ["t2"]})).json()
        assert len(gone["messages"]) == 12
        assert not [m for m in await get(page, "/search", text="marathon") if "Today" in m["text"]]


class HeldEmbedder(HashingEmbedder):
    """Gives vectors once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.go_on.wait(30)
        return super().embed(texts)


async def test_words_are_found_while_the_index_is_made(filled: Path, tmp_path: Path) -> None:
    copytree(filled, tmp_path, dirs_exist_ok=True)
    held = HeldEmbedder()
    with open_folder(tmp_path, embedder=held) as graph:
        async with open_client(graph) as page:
            await page.get("/?key=secret")
            assert (await get(page, "/index"))["left"] > 20
            (found,) = await get(page, "/search", text="9 KILOMETRES")
            assert (found["id"], found["relevance"]) == ("m17", None)
            held.go_on.set()
            while (await get(page, "/index"))["left"]:
                pass
            found = await get(page, "/search", text="9 KILOMETRES")
            assert (found[0]["topic"], found[0]["relevance"] > 0) == ("t2", True)


@pytest.mark.slow
async def test_what_another_process_purged_is_shown_no_more(
    graph: CompiledSessionGraph, page: httpx.AsyncClient
) -> None:
    wanted = "The kitchen worktop of oak costs 240 euros"

    async def look() -> str:
        shown = [
            await get(page, path, **query)
            for path, query in (
                ("/messages", {"limit": 100}),
                ("/messages/m3", {}),
                ("/topics/t1", {"limit": 100}),
                ("/topics", {}),
                ("/search", {"text": wanted}),
                ("/prompt", {}),
            )
        ]
        return str(shown)

    assert wanted in await look()
    folder = graph.builder.deps.settings.folder
    assert folder is not None
    Memory(FileStorage(folder, fsync=False), NAME).forget("m3")
    after = await look()
    assert wanted not in after
    assert REMOVED in after


@pytest.mark.slow
async def test_a_users_threads_and_facts_are_listed_with_their_spans(tmp_path: Path) -> None:
    """Those that the session may see: nothing of another scope."""
    people = People(tmp_path)
    people.learn("web", "I live in Ulm.", "home")
    people.learn("slack", "I live in Bonn.", "home")
    people.learn("secret", "I lead a team.", scope="work")
    app = inspect(people.graph, editing=False)  # type: ignore[arg-type]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as page:
        await page.get("/?key=secret")
        told = (await page.get("/api/session/web/person")).json()
        work = (await page.get("/api/session/secret/person")).json()
        assert (await page.get("/api/session/web/facts")).json().keys() == {told["spans"][1]["key"]}
    assert (told["user"], told["scope"], set(told["threads"])) == ("ann", "", {"web", "slack"})
    spans = [(s["fact"], s["since"][:10], s["until"][:10], s["thread"]) for s in told["spans"]]
    assert spans == [
        ("I live in Ulm.", "2026-03-02", "2026-03-03", "web"),
        ("I live in Bonn.", "2026-03-03", "", "slack"),
    ]
    assert work["scope"] == "work"
    assert {s["fact"] for s in work["spans"]} >= {"I lead a team.", "I live in Bonn."}


async def test_a_session_of_nobody_has_no_user(page: httpx.AsyncClient) -> None:
    assert await get(page, "/person") == {"user": "", "scope": "", "threads": {}, "spans": []}
