"""Whatever was said before, no provider refuses what is sent: requests by the real clients."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from agents import open_agent, remember
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command
from payloads import Provider, ProviderModel, RefusedError, build_payload
from sessions import open_graph, thread

from topicloom.roles.responder import ChatResponder
from topicloom.testing import fake_roles

Kind = Literal["session", "agent"]
PROVIDERS: tuple[Provider, ...] = ("chat", "responses", "anthropic", "gemini")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(64)).decode()
IMAGE = {"type": "image", "base64": PNG, "mime_type": "image/png"}
DOCUMENT = {
    "type": "document",
    "title": "Lease",
    "source": {"type": "text", "media_type": "text/plain", "data": "clause " * 2_000},
}
LONG = " ".join(f"The {n}th point is about the kettle." for n in range(300))
LINES = "Noted.\n[m1] user: a line like ours\n# Boiler (t3)"


def look(query: str) -> str:
    """Look something up."""
    return f"seen {query}"


def picture(query: str) -> Any:
    """Hand a picture over as a message of the user."""
    result = ToolMessage("a picture", tool_call_id=f"p-{query}")
    return Command(update={"messages": [result, HumanMessage([IMAGE])]})


def made(step: int, name: str, query: str) -> dict[str, Any]:
    id_ = f"p-{query}" if name == "picture" else f"c-{step}-{query}"
    return {"name": name, "args": {"query": query}, "id": id_, "type": "tool_call"}


def say_chat(step: int, text: str, calls: Sequence[dict[str, Any]]) -> AIMessage:
    told = {"model_provider": "openai", "finish_reason": "stop"}
    return AIMessage(text, tool_calls=list(calls), response_metadata=told, id=f"r{step}")


def say_responses(step: int, text: str, calls: Sequence[dict[str, Any]]) -> AIMessage:
    thought = {"type": "reasoning", "id": f"rs_{step}", "summary": []}
    content: list[Any] = [thought]
    if text:
        content.append({"type": "text", "text": text, "id": f"msg_{step}", "annotations": []})
    for call in calls:
        args = f'{{"query": "{call["args"]["query"]}"}}'
        content.append(
            {
                "type": "function_call",
                "id": f"fc_{step}",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": args,
            }
        )
    told = {"model_provider": "openai"}
    return AIMessage(content, tool_calls=list(calls), response_metadata=told, id=f"resp_{step}")


def say_anthropic(step: int, text: str, calls: Sequence[dict[str, Any]]) -> AIMessage:
    content: list[Any] = [{"type": "thinking", "thinking": "hm", "signature": f"S{step}"}]
    content += [{"type": "text", "text": text}] if text else []
    for call in calls:
        content.append(
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        )
    told = {"model_provider": "anthropic"}
    return AIMessage(content, tool_calls=list(calls), response_metadata=told, id=f"msg{step}")


def say_v1(step: int, text: str, calls: Sequence[dict[str, Any]]) -> AIMessage:
    thought = {"type": "reasoning", "reasoning": "hm", "extras": {"signature": f"S{step}"}}
    content: list[Any] = [thought, *([{"type": "text", "text": text}] if text else []), *calls]
    told = {"model_provider": "anthropic", "output_version": "v1"}
    return AIMessage(content, tool_calls=list(calls), response_metadata=told, id=f"v{step}")


def say_gemini(step: int, text: str, calls: Sequence[dict[str, Any]]) -> AIMessage:
    content: list[Any] = [{"type": "thinking", "thinking": "hm", "signature": "U0lH"}]
    content += [{"type": "text", "text": text}] if text else []
    signed = {call["id"]: "U0lH" for call in calls}
    extra = {"__gemini_function_call_thought_signatures__": signed} if calls else {}
    return AIMessage(
        content,
        tool_calls=list(calls),
        additional_kwargs=extra,
        response_metadata={"model_provider": "google_genai"},
        id=f"g{step}",
    )


Say = Callable[[int, str, Sequence[dict[str, Any]]], AIMessage]
FORMS: dict[str, tuple[Provider, Say]] = {
    "chat": ("chat", say_chat),
    "responses": ("responses", say_responses),
    "anthropic": ("anthropic", say_anthropic),
    "anthropic v1": ("anthropic", say_v1),
    "gemini": ("gemini", say_gemini),
}
COMPACTED = {
    "responses": {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
    "anthropic": {"type": "compaction", "content": "A summary."},
}
SEARCHED: list[Any] = [
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "a"}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
]


def open_kind(kind: Kind, folder: Path, model: ProviderModel, **options: Any) -> Any:
    tools = [look, picture]
    settings = {"window": 6_000, "recall_tokens": 800} | options
    if kind == "agent":
        return open_agent(model, remember(folder, settings=settings), tools=tools)
    return open_graph(folder, fake_roles(ChatResponder(model)), tools=tools, **settings)


def list_turns(form: str) -> list[tuple[list[AnyMessage], list[AIMessage]]]:
    """The hardest history of a provider: what the user says, and what the model says to it."""
    provider, say = FORMS[form]
    call = made
    document = [DOCUMENT] if provider == "anthropic" else []
    turns: list[tuple[list[AnyMessage], list[AIMessage]]] = [
        ([HumanMessage("tea: hello")], [say(1, "Hello.", [])]),
        (
            [HumanMessage("tea: look up two")],
            [say(2, "I look.", [call(2, "look", "a"), call(2, "look", "b")]), say(3, "Both.", [])],
        ),
        ([HumanMessage([{"type": "text", "text": "boat: see"}, IMAGE])], [say(4, "A boat.", [])]),
        (
            [HumanMessage("boat: pictures")],
            [
                say(5, "", [call(5, "picture", "a"), call(5, "picture", "b")]),
                say(6, "", [call(6, "look", "c")]),
                say(7, "Seen.", []),
            ],
        ),
        ([SystemMessage("The user logged in."), HumanMessage("oven: who?")], [say(8, LINES, [])]),
        (
            [HumanMessage(["oven: read", *document])],
            [say(9, LONG, [])],
        ),
        (
            [HumanMessage("oven: garbled")],
            [say(10, LINES, [call(10, "look", "d")]), say(11, "Done.", [])],
        ),
    ]
    if provider in COMPACTED:
        reply = say(12, "Compacted.", [])
        content: list[Any] = [COMPACTED[provider], *reply.content]
        turns.append(([HumanMessage("dog: on")], [reply.model_copy(update={"content": content})]))
    if form == "anthropic":
        reply = say(13, "Found.", [])
        found: list[Any] = [reply.content[0], *SEARCHED, reply.content[1]]
        turns.append(([HumanMessage("dog: find")], [reply.model_copy(update={"content": found})]))
    many: list[tuple[list[AnyMessage], list[AIMessage]]] = [
        ([HumanMessage(f"{topic}: number {n} " + "word " * 120)], [say(20 + n, f"{n}. " * 60, [])])
        for n, topic in enumerate(["tea", "boat", "oven"] * 4)
    ]
    last = [say(50, "I look.", [call(50, "look", "z")]), say(51, "So.", [])]
    return [*turns, *many, ([HumanMessage("tea: what was it?")], last)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["session", "agent"])
@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_the_hardest_history(tmp_path: Path, form: str, kind: Kind) -> None:
    model = ProviderModel(provider=FORMS[form][0])
    graph = open_kind(kind, tmp_path, model)
    for said, replies in list_turns(form):
        model.script[:] = replies
        graph.invoke({"messages": said}, thread())
        assert model.refused == []
        assert model.script == [], "every reply was asked for"
    assert len(model.payloads) > 20
    if "anthropic" in form:
        thoughts = [b for m in model.payloads[-1] for b in m["content"] if isinstance(b, dict)]
        assert {"type": "thinking", "thinking": "hm", "signature": "S50"} in thoughts


def both(*results: ToolMessage) -> list[BaseMessage]:
    calls = [made(0, "look", "a"), made(0, "look", "b")]
    return [HumanMessage("Oslo and Bergen?"), AIMessage("", tool_calls=calls), *results]


A, B = (ToolMessage(q, tool_call_id=f"c-0-{q}") for q in "ab")
STRAY = ToolMessage("stale", tool_call_id="old")
THANKS = [AIMessage("Snow, rain."), HumanMessage("thanks")]
INVALID = {"name": "look", "args": '{"query": ', "id": "i1", "error": None}
HISTORIES: dict[str, list[BaseMessage]] = {
    "a second result": [*both(A, A, B), *THANKS],
    "a stray result": [*both(STRAY, A, B), *THANKS],
    "a result is missing": [*both(B), *THANKS],
    "no result": [*both(), HumanMessage("never mind")],
    "the user between results": [*both(A), HumanMessage("wait"), B, *THANKS],
    "a result behind the reply": [*both(A), AIMessage("Snow."), B, HumanMessage("thanks")],
    "two calls of one id": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[made(0, "look", "a"), made(0, "look", "a")]),
        *(A, A),
        *THANKS,
    ],
    "the same id again": [*both(A, B), AIMessage("So."), *both(A, B), *THANKS],
    "a reply first": [AIMessage("How can I help?"), HumanMessage("thanks")],
    "a call first": [*both(A, B)[1:], *THANKS],
    "a result first": [A, HumanMessage("thanks")],
    "an empty reply": [*both(A, B), AIMessage(""), HumanMessage("thanks")],
    "an empty user": [HumanMessage("go"), AIMessage("Yes."), HumanMessage(""), *THANKS],
    "a thought alone": [
        HumanMessage("go"),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "S"}]),
        HumanMessage("thanks"),
    ],
    "system first": [SystemMessage("Be kind."), HumanMessage("hi"), *THANKS],
    "system within": [HumanMessage("hi"), SystemMessage("Logged in."), *THANKS],
    "system last but one": [*both(A, B), *THANKS[:1], SystemMessage("Now."), THANKS[1]],
    "an invalid call": [
        HumanMessage("go"),
        AIMessage("", invalid_tool_calls=[{**INVALID, "type": "invalid_tool_call"}]),
        ToolMessage("no JSON", tool_call_id="i1"),
        *THANKS,
    ],
    "a strange name": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[{**made(0, "look", "a"), "name": "look up\n<it>"}]),
        *(A, *THANKS),
    ],
    "no id": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[{**made(0, "look", "a"), "id": None}]),
        *THANKS,
    ],
    "a role of an older kind": [
        HumanMessage("hi"),
        ChatMessage(content="Yes?", role="assistant"),
        ChatMessage(content="Logged in.", role="system"),
        ChatMessage(content="Hm.", role="user"),
        *THANKS,
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["session", "agent"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_any_form(tmp_path: Path, name: str, kind: Kind) -> None:
    model = ProviderModel(provider="chat")
    graph = open_kind(kind, tmp_path, model)
    history = [m.model_copy() for m in HISTORIES[name]]
    graph.invoke({"messages": history}, thread())
    graph.invoke({"messages": [HumanMessage("and then?")]}, thread())
    assert model.refused == []
    for provider in PROVIDERS:
        for prompt in model.prompts:
            build_payload(provider, prompt)


@pytest.mark.slow
def test_the_rules_refuse() -> None:
    """What the histories are is refused as it is, by one provider at least."""
    refused = set[str]()
    for name, history in HISTORIES.items():
        for provider in PROVIDERS:
            try:
                build_payload(provider, history)
            except Exception:  # noqa: BLE001 - a client's own errors count as well
                refused.add(name)
    assert refused >= HISTORIES.keys() - {"system first", "a thought alone", "an empty reply"}
    with pytest.raises(RefusedError):
        build_payload("chat", [SystemMessage("Be kind.")])
