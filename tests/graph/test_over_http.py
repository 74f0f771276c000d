"""The whole graph with chat models behind a real HTTP server."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import (
    Behaviour,
    Call,
    CutStream,
    Empty,
    Garbage,
    Reply,
    Request,
    Status,
    router,
    system_text,
)
from openai_server import OpenAIServer
from sessions import tell

from topicloom import FileStorage, ReplyError, Session, SessionStore, Settings, build_session_graph
from topicloom.graph.deps import make_deps
from topicloom.graph.parts import GraphParts
from topicloom.hosting import get_model_name
from topicloom.prompts.loader import load_prompt
from topicloom.roles.registry import spec_of

pytestmark = pytest.mark.long

CONFIG: RunnableConfig = {"configurable": {"thread_id": "http"}}
READER, SPLITTER, ROUTER, BRIEF = (
    "You read topics",
    "You sort messages",
    "You find the topics",
    "You write the brief",
)


def prompt_text(request: Request) -> str:
    return "\n".join(str(m["content"]) for m in request["messages"] if m["role"] != "system")


def split_all(request: Request) -> Reply:
    """Everything into one new topic, or the first that there is."""
    ids = dict.fromkeys(re.findall(r"\[(m\d+)\]", prompt_text(request)))
    known = re.search(r"\b(t\d+)\b", prompt_text(request))
    home = (
        f'topic="existing_active" topic_id="{known[1]}"'
        if known
        else 'topic="new" topic_name="All"'
    )
    rows = "".join(f'<assignment msg_id="{i}" {home}></assignment>' for i in ids)
    return Reply(f"<topic_split>{rows}</topic_split>")


def read(request: Request) -> Reply:
    return Reply(
        "<topic_result><relevance_score>0.9</relevance_score>"
        "<referenced_messages>m1\nm1\nm99999</referenced_messages>"
        "<summary>The code word was chosen early.</summary></topic_result>"
    )


ROLES: dict[str, Any] = {
    READER: read,
    SPLITTER: split_all,
    ROUTER: Reply(
        '<topic_routing><matched_topics><topic id="t1" relevance="high">it</topic>'
        "</matched_topics></topic_routing>"
    ),
    BRIEF: Reply("<topic_brief><name>Code word</name><brief>A code word.</brief></topic_brief>"),
}


def session_graph(server: OpenAIServer, folder: Path) -> Any:
    settings = Settings(window=1_500, folder=folder, fsync=False, max_retries=1, reply_attempts=2)
    graph = build_session_graph(
        model="openai:strong",
        cheap_model="openai:cheap",
        settings=settings.model_copy(update={"base_url": server.base_url, "api_key": "k"}),
    )
    return graph.compile(checkpointer=InMemorySaver())


def say(app: Any, text: str) -> dict[str, Any]:
    result: dict[str, Any] = app.invoke({"messages": [("user", text)]}, CONFIG)
    return result


def fill(app: Any, turns: int = 12) -> dict[str, Any]:
    result = say(app, "The code word is heron. Please keep it in mind.")
    for turn in range(turns):
        result = say(app, f"Message {turn} of a long talk about gardens and their weeds. " * 4)
    return result


def kept(folder: Path, result: dict[str, Any]) -> list[str]:
    session = Session.model_validate(result["session"])
    return [r.text for r in SessionStore(FileStorage(folder).open("http")).messages(session)]


def receipt(folder: Path, result: dict[str, Any]) -> Any:
    session = Session.model_validate(result["session"])
    return SessionStore(FileStorage(folder).open("http")).receipts(session, newest=1)[0]


def test_a_session_splits_reads_and_quotes(openai_server: OpenAIServer, tmp_path: Path) -> None:
    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = session_graph(openai_server, tmp_path)
    fill(app)
    result = say(app, "What was the code word?")
    last = openai_server.requests[-1]
    assert "heron" in prompt_text(last)
    assert result["messages"][-1].content == "Noted."
    readers = [c for c in receipt(tmp_path, result).calls if c.role == "reader"]
    assert readers
    assert any("m99999" in remark for c in readers for remark in c.remarks)


def test_activate_topic_goes_through_the_router(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        tools = [t["function"]["name"] for t in request.get("tools", ())]
        if "activate_topic" in tools and not asked:
            asked.append(request)
            return Reply("", tool_calls=[Call("activate_topic", {"query": "code word"})])
        return Reply("It was heron.")

    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = session_graph(openai_server, tmp_path)
    fill(app)
    openai_server.otherwise(router(ROLES, answer))
    tokens = [
        chunk.content
        for chunk, _ in app.stream(
            {"messages": [("user", "Say it.")]}, CONFIG, stream_mode="messages"
        )
    ]
    assert "".join(tokens) == "It was heron."
    assert asked


@pytest.mark.parametrize("trouble", [Status(500), Garbage(), Empty(), CutStream(1)])
def test_failing_roles_never_fail_the_turn(
    openai_server: OpenAIServer, tmp_path: Path, trouble: Any
) -> None:
    openai_server.otherwise(router(dict.fromkeys(ROLES, trouble), Reply("Noted.")))
    app = session_graph(openai_server, tmp_path)
    result = fill(app)
    texts = kept(tmp_path, result)
    assert sum("Message" in t for t in texts) == 12
    assert result["session"]["topics"]
    failures = [c for c in receipt(tmp_path, result).calls if c.failure]
    assert failures
    # What a cheap model failed to read, the embedded reader reads.
    assert all(
        any(c.topic == f.topic and not c.failure for c in receipt(tmp_path, result).calls)
        for f in failures
        if f.role == "reader"
    )


@pytest.mark.parametrize(
    "trouble", [Status(500), Status(429, retry_after=0.01), Garbage(), Empty(), CutStream(2)]
)
def test_a_reply_that_fails_for_good_loses_nothing(
    openai_server: OpenAIServer, tmp_path: Path, trouble: Any
) -> None:
    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = session_graph(openai_server, tmp_path)
    fill(app, 3)
    openai_server.otherwise(router(ROLES, trouble))
    with pytest.raises(ReplyError, match="kept"):
        say(app, "Is anybody there?")
    openai_server.otherwise(router(ROLES, Reply("Here I am.")))
    result = say(app, "And now?")
    assert result["messages"][-1].content == "Here I am."
    texts = kept(tmp_path, result)
    assert texts.count("Is anybody there?") == 1
    assert texts.count("And now?") == 1


def test_a_reply_is_tried_again(openai_server: OpenAIServer, tmp_path: Path) -> None:
    openai_server.then(Status(429, retry_after=0.01), CutStream(1), Reply("At last."))
    app = session_graph(openai_server, tmp_path)
    assert say(app, "Hello")["messages"][-1].content == "At last."


@pytest.mark.parametrize("id_", ["", "c", None])
def test_each_tool_call_has_an_id_of_its_own(
    openai_server: OpenAIServer, tmp_path: Path, id_: Any
) -> None:
    """Servers give none, or all the same one: each result belongs to its call all the same."""

    def tide(place: str) -> str:
        """When it is high water."""
        return f"{place}: soon"

    calls = [Call("tide", {"place": place}, id_) for place in ("Rome", "Oslo")]
    openai_server.then(Reply("", tool_calls=calls), Reply("Soon."), Reply("Yes."))
    settings = Settings(folder=tmp_path, fsync=False, base_url=openai_server.base_url, api_key="k")
    built = build_session_graph(model="openai:main", settings=settings, tools=[tide])
    graph = built.compile(checkpointer=InMemorySaver())
    assert tell(graph, CONFIG, "When is high water?")[-1].content == "Soon."
    assert tell(graph, CONFIG, "Sure?")[-1].content == "Yes."
    sent = openai_server.requests[-1]["messages"]
    (called,) = (m["tool_calls"] for m in sent if m.get("tool_calls"))
    results = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert [results[c["id"]] for c in called] == ["Rome: soon", "Oslo: soon"]


async def test_the_same_on_the_event_loop(openai_server: OpenAIServer, tmp_path: Path) -> None:
    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = session_graph(openai_server, tmp_path)
    weeds = [f"Message {turn} about gardens and weeds. " * 9 for turn in range(12)]
    for text in ["The code word is heron.", *weeds, "What was the code word?"]:
        result = await app.ainvoke({"messages": [("user", text)]}, CONFIG)
    assert result["session"]["topics"]
    assert "[m1] user: The code word is heron." in prompt_text(openai_server.requests[-1])


ways = pytest.mark.parametrize("how", ["sync", "async"])


def own_graph(server: OpenAIServer, folder: Path, name: str, **changes: Any) -> Any:
    given: dict[str, Any] = {"window": 1_500, "base_url": server.base_url, "api_key": "k"}
    settings = Settings(folder=folder, fsync=False, max_retries=0, **(given | changes))
    built = build_session_graph(model=f"openai:{name}", settings=settings)
    return built.compile(checkpointer=InMemorySaver())


def read_stream(app: Any, text: str, how: str) -> str:
    said = {"messages": [("user", text)]}

    async def astream() -> list[Any]:
        return [part async for part in app.astream(said, CONFIG, stream_mode="messages")]

    if how == "sync":
        parts = list(app.stream(said, CONFIG, stream_mode="messages"))
    else:
        parts = asyncio.run(astream())
    return "".join(chunk.content for chunk, _ in parts)


@ways
def test_nothing_but_the_reply_is_streamed(
    openai_server: OpenAIServer, tmp_path: Path, how: str
) -> None:
    """What comes bit by bit is read on past its deadline."""
    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = own_graph(openai_server, tmp_path, f"streams-{how}")
    fill(app)
    before = len(openai_server.requests)
    assert read_stream(app, "What was the code word?", how) == "Noted."
    *inner, reply = openai_server.requests[before:]
    assert inner
    assert [bool(r.get("stream")) for r in (*inner, reply)] == [False] * len(inner) + [True]


@ways
def test_a_model_without_tools_searches_by_a_line(
    openai_server: OpenAIServer, tmp_path: Path, how: str
) -> None:
    refused: list[Request] = []
    asked: list[Request] = []

    def answer(request: Request) -> Behaviour:
        if request.get("tools"):
            refused.append(request)
            return Status(400, message="gemma3 does not support tools")
        told = load_prompt("search_line", "en") in system_text(request)
        if told and "Say it." in prompt_text(request) and not asked:
            asked.append(request)
            return Reply("Let me see.\n**SEARCH: code word | last week**\n")
        return Reply("It was heron.")

    openai_server.otherwise(router(ROLES, answer))
    app = own_graph(openai_server, tmp_path, f"no-tools-{how}")
    fill(app)
    assert len(refused) == 1
    assert read_stream(app, "Say it.", how) == "It was heron."
    last = receipt(tmp_path, app.get_state(CONFIG).values)
    assert [(s.query, s.when) for s in last.searches] == [("code word", "last week")]
    (remark,) = {r for c in last.calls if c.role == "responder" for r in c.remarks}
    assert remark.startswith("no tools: ")
    assert len(refused) == 1


@ways
def test_a_window_that_turns_out_smaller_splits_at_once(
    openai_server: OpenAIServer, tmp_path: Path, how: str
) -> None:
    limit = 6_000

    def answer(request: Request) -> Behaviour:
        if len(prompt_text(request)) > limit:
            words = "request (3031 tokens) exceeds the available context size (1500 tokens)"
            return Status(400, message=words)
        return Reply("Noted.")

    openai_server.otherwise(router(ROLES, answer))
    app = own_graph(openai_server, tmp_path, f"smaller-{how}", window=None)
    for turn in range(30):
        message = {"messages": [("user", f"Message {turn} on gardens and their weeds. " * 5)]}
        if how == "sync":
            app.invoke(message, CONFIG)
        else:
            asyncio.run(app.ainvoke(message, CONFIG))
    result = app.get_state(CONFIG).values
    assert result["session"]["topics"]
    assert sum("Message" in text for text in kept(tmp_path, result)) == 30
    assert receipt(tmp_path, result).window == 1_500


def test_the_context_of_the_server_is_the_window(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.models = [{"id": "listed", "meta": {"n_ctx": 2_048}}]
    openai_server.otherwise(router(ROLES, Reply("Noted.")))
    app = own_graph(openai_server, tmp_path, "listed", window=None)
    assert openai_server.listed == 0, "nobody is asked before the first turn"
    assert receipt(tmp_path, say(app, "Hello")).window == 2_048


def test_endpoints_by_role(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A base URL goes to the models of its protocol alone, and a key to its own server."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure")
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    settings = Settings(
        folder=tmp_path,
        base_url="http://strong/v1",
        api_key="strong",
        role_base_urls={"cheap": "http://cheap/v1", "router": "http://router/v1"},
        role_api_keys={"router": "routing"},
    )
    azure = "azure_openai:gpt-4o"
    parts = GraphParts(
        settings=settings,
        model="openai:strong",
        cheap_model="openai:cheap",
        role_models={"router": "openai:r", "brief": azure},
    )
    roles = make_deps(parts).roles

    def endpoint(name: str) -> tuple[str, str]:
        client = roles[spec_of(name)]._chat.model.root_client
        return client.base_url.host, client.api_key

    namesakes = make_deps(
        GraphParts(
            settings=settings.model_copy(update={"role_api_keys": {"cheap": ""}}),
            model="openai:same",
            cheap_model="openai:same",
        )
    ).roles
    clients = {
        name: namesakes[spec_of(name)]._chat.model.root_client for name in ("splitter", "reader")
    }
    assert {name: (c.base_url.host, c.api_key) for name, c in clients.items()} == {
        "splitter": ("strong", "strong"),
        "reader": ("cheap", "not-needed"),
    }, "models of one name at two servers; no key is no other's"

    assert endpoint("splitter") == ("strong", "strong")
    assert endpoint("reader") == ("cheap", "not-needed")
    assert endpoint("router") == ("router", "routing")
    assert endpoint("brief") == ("mine.openai.azure.com", "azure")
    assert get_model_name(roles[spec_of("reader")]._chat.model) == "cheap"
