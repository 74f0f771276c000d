"""Summaries of segments by a brief writer."""

from __future__ import annotations

from openai_behaviours import Reply
from openai_server import OpenAIServer

from topicloom import StoredMessage
from topicloom.lab import Chat, ChatBriefWriter, PrefixMeter, open_model
from topicloom_lab.strategies.segments import summarize_by_briefs


def test_a_brief_writer_is_shown_the_originals(openai_server: OpenAIServer) -> None:
    answer = "<topic_brief><name>Oak</name><brief>An oak worktop.</brief></topic_brief>"
    openai_server.then(Reply(answer))
    model = open_model("openai:gpt-4o", base_url=openai_server.base_url, api_key="test")
    said = [
        StoredMessage(seq=n, role="user", text=t, time="")
        for n, t in enumerate(("oak it is", "fine"), start=1)
    ]
    summarize = summarize_by_briefs(ChatBriefWriter(Chat.of(model, PrefixMeter())), "en")
    assert summarize(said) == "An oak worktop."
    sent = "\n".join(str(m["content"]) for m in openai_server.requests[0]["messages"])
    assert "[m1] user: oak it is" in sent
