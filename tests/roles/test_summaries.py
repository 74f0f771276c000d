"""Summaries of segments: whole messages, or a brief."""

from __future__ import annotations

from openai_server import OpenAIServer, Reply

from topicloom.context.prefix import PrefixMeter
from topicloom.context.tokens import count_budget_tokens
from topicloom.index.hashing import HashingEmbedder
from topicloom.roles.brief import ChatBriefWriter, summarize_by_briefs, summarize_by_extracts
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.state.stored_message import StoredMessage

EMBEDDER = HashingEmbedder(256)


def messages(*texts: str) -> list[StoredMessage]:
    return [
        StoredMessage(seq=n, role="user", text=t, time="") for n, t in enumerate(texts, start=1)
    ]


def test_an_extract_has_whole_messages_in_their_order() -> None:
    said = messages(*(f"the oak worktop, offer {n}, in detail" for n in range(9)), "hello")
    text = summarize_by_extracts(EMBEDDER, count_budget_tokens, 40)(said)
    lines = text.splitlines()
    assert 1 < len(lines) < 9
    assert set(lines) <= {r.line for r in said}
    assert lines == sorted(lines, key=[r.line for r in said].index)
    assert count_budget_tokens(text) <= 40


def test_a_message_that_does_not_fit_is_cut() -> None:
    text = summarize_by_extracts(EMBEDDER, count_budget_tokens, 20)(messages("oak " * 200))
    assert text.startswith("user: oak oak")
    assert text.endswith("...")
    assert count_budget_tokens(text) <= 24


def test_of_nothing_said_there_is_nothing_to_say() -> None:
    assert summarize_by_extracts(EMBEDDER, count_budget_tokens, 20)(messages(" ", "")) == ""


def test_a_brief_writer_is_shown_the_originals(openai_server: OpenAIServer) -> None:
    answer = "<topic_brief><name>Oak</name><brief>An oak worktop.</brief></topic_brief>"
    openai_server.then(Reply(answer))
    model = open_model("openai:gpt-4o", base_url=openai_server.base_url, api_key="test")
    summarize = summarize_by_briefs(ChatBriefWriter(Chat.of(model, PrefixMeter())), "en")
    assert summarize(messages("oak it is", "fine")) == "An oak worktop."
    sent = "\n".join(str(m["content"]) for m in openai_server.requests[0]["messages"])
    assert "[m1] user: oak it is" in sent
