"""Images that have left the view: a line stands for them, and they can be asked for again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Behaviour, Reply, Request, Status
from openai_server import OpenAIServer
from sessions import (
    check_kept,
    kept,
    last_receipt,
    open_graph,
    past,
    prompt_of,
    record,
    tell,
    thread,
)

from topicloom import RESPONDER, ReplyRequest, get_session
from topicloom.context.transcript import show_message
from topicloom.roles.responder import ChatResponder
from topicloom.testing import ScriptedResponder, fake_roles, make_topic_search

CONFIG = thread()
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "AAAA" * 20_000}}
LINES = {"en": "[image: m1]", "zh": "[图片：m1]"}


def show_and_move(graph: Any) -> None:
    """Show an image in a first message, and have it move into a topic, out of view."""
    content: list[Any] = [{"type": "text", "text": "茶：看这把壶"}, IMAGE]
    record(graph, CONFIG, HumanMessage(content, id="pot"), *past("茶", "雨"))
    tell(graph, CONFIG, "茶：好", keep=0)
    tell(graph, CONFIG, "雨：好")


def blocks_of(request: ReplyRequest) -> list[Any]:
    return [b for m in request.messages if isinstance(m.content, list) for b in m.content]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_quoted_image_is_a_line_and_can_be_asked_for(tmp_path: Path, language: str) -> None:
    responder, saver = ScriptedResponder(), InMemorySaver()
    graph = open_graph(
        tmp_path,
        fake_roles(responder),
        checkpointer=saver,
        language=language,
        window=8_000,
        recall_tokens=900,
    )
    show_and_move(graph)
    line = LINES[language]
    assert line in prompt_of(responder.requests[-1])
    assert IMAGE not in blocks_of(responder.requests[-1])

    responder.script = [make_topic_search(f"请看 {line}"), "It is red."]
    tell(graph, CONFIG, "壶是什么颜色？")
    *_, text, image = blocks_of(responder.requests[-1])
    assert (text, image) == ({"type": "text", "text": line}, IMAGE)
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert [s.media for s in receipt.searches] == [("m1",)]
    assert receipt.sections["notes"] > 765
    assert [c.role for c in receipt.calls if c.role == "router"] == []

    tell(graph, CONFIG, "雨：好")
    assert blocks_of(responder.requests[-1]).count(IMAGE) == 1, "it stays, as notes do"
    session = get_session(graph, CONFIG)
    assert session.ledger_tokens > 765
    assert check_kept(kept(tmp_path, session), session)[0].message.content[1] == IMAGE
    rows = [len(repr(t.checkpoint)) for t in saver.list(CONFIG, limit=8)]
    assert max(rows) < 48_000, "the image itself is in storage alone"


@pytest.mark.slow
@pytest.mark.parametrize(("window", "shown"), [(4_000, 1), (8_000, 2), (16_000, 5)])
def test_of_many_images_those_that_fit_come_back(tmp_path: Path, window: int, shown: int) -> None:
    responder = ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder), window=window, recall_tokens=None)
    record(graph, CONFIG, HumanMessage([IMAGE] * 6, id="pots"), *past("茶", "雨"))
    tell(graph, CONFIG, "茶：好", keep=0)
    responder.script = [make_topic_search("[图片 ×6：m1]"), "So."]
    tell(graph, CONFIG, "看看它们")
    assert blocks_of(responder.requests[-1]).count(IMAGE) == shown


@pytest.mark.slow
def test_what_is_in_view_or_unknown_is_looked_for_as_ever(tmp_path: Path) -> None:
    responder = ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder), window=8_000, recall_tokens=900)
    show_and_move(graph)
    for query in ("[image: m2]", "[image: m99999999999]", "BMW: m1", "[image: m1]"):
        responder.script = [make_topic_search(query), "So."]
        tell(graph, CONFIG, "雨：好")
    receipts = kept(tmp_path, get_session(graph, CONFIG)).receipts(get_session(graph, CONFIG), 4)
    assert [r.searches[0].media for r in receipts] == [(), (), ("m1",), ("m1",)]
    assert blocks_of(responder.requests[-1]).count(IMAGE) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_a_model_that_takes_no_images_gets_the_line(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    from langchain_openai import ChatOpenAI

    def answer(request: Request) -> Behaviour:
        if "image_url" in str(request["messages"]):
            return Status(400, message="image input is not supported - provide the mmproj")
        return Reply("Noted.")

    openai_server.otherwise(answer)
    model = ChatOpenAI(model="blind", base_url=openai_server.base_url, api_key="k")
    roles = fake_roles().replace(RESPONDER, ChatResponder(model))
    graph = open_graph(tmp_path, roles)
    content: list[Any] = [{"type": "text", "text": "What is this?"}, IMAGE]
    graph.invoke({"messages": [HumanMessage(content)]}, CONFIG)
    (sent,) = [m for m in openai_server.requests[-1]["messages"] if m["role"] == "user"]
    assert sent["content"].endswith("What is this?\n[image: m1]")
    (call,) = last_receipt(tmp_path, graph, CONFIG).calls
    assert call.remarks[0].startswith("no images: ")
    tell(graph, CONFIG, "And now?")
    assert len(openai_server.requests) == 3, "it is not tried again"


@pytest.mark.filterwarnings("ignore:left out of the prompt")
@pytest.mark.parametrize(
    "broken",
    [
        {"type": "image", "source_type": "base64"},
        {"type": "audio", "source_type": "url"},
        {"type": "file", "source_type": "id"},
    ],
)
def test_one_that_no_model_can_read_is_a_line_and_ends_nothing(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    model = FakeListChatModel(responses=["A pot.", "A cup."])
    graph = open_graph(tmp_path, fake_roles().replace(RESPONDER, ChatResponder(model)))
    content: list[Any] = [{"type": "text", "text": "What is this?"}, broken]
    graph.invoke({"messages": [HumanMessage(content)]}, CONFIG)
    graph.invoke({"messages": [HumanMessage("And this?")]}, CONFIG)
    session = get_session(graph, CONFIG)
    stored = kept(tmp_path, session).originals(session)
    assert [m.text for m in stored] == ["What is this?", "A pot.", "And this?", "A cup."]
    assert stored[0].message.content == content
    shown = show_message(stored[0], "What is this?", "")
    assert shown.content == f"What is this?\n[{broken['type']}: m1]"
