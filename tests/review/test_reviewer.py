"""Reviewers and mergers: as chat models, against a server that does what servers do; embedded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai_behaviours import Empty, Reply, Status, Usage
from openai_server import OpenAIServer

from topicloom import (
    Answer,
    Assessment,
    MergeRequest,
    ReviewPolicy,
    ReviewRequest,
    StoredMessage,
    Topic,
    UnusableAnswerError,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.prompts.wording import get_wording
from topicloom.review.merger import SAME_TOPIC, ChatMerger, EmbeddedMerger
from topicloom.review.reviewer import ChatReviewer, EmbeddedReviewer, rate_importance
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.stored_message import MessageRole


def said(*texts: str, role: MessageRole = "user", day: int = 2) -> list[StoredMessage]:
    time = f"2026-03-{day:02}T09:00:00+00:00"
    return [StoredMessage(seq=n, role=role, text=t, time=time) for n, t in enumerate(texts, 41)]


TEA = Topic(id="t1", name="Tea", brief="All about tea", first_at="2026-03-02", last_at="2026-03-09")
RAIN = Topic(id="t2", name="Rain", summary="It rained.")
REQUEST = ReviewRequest("s", TEA, said("Which tea?", "The green one."), "en")
PAIR = MergeRequest("s", (TEA, RAIN), 0.7, "en")
GOOD = (
    "<topic_review><name>Green tea</name><brief>Tea, green.</brief><summary>Green was chosen."
    "</summary><importance>0.7</importance><lasting>no</lasting></topic_review>"
)
FOUND = Assessment(
    name="Green tea", brief="Tea, green.", summary="Green was chosen.", importance=0.7, once=True
)


def chat(server: OpenAIServer) -> Chat:
    options: dict[str, Any] = {"base_url": server.base_url, "timeout": 5, "max_retries": 0}
    return Chat.of(open_model("openai:gpt-4o", api_key="test", **options), PrefixMeter())


def reviewed(server: OpenAIServer, how: str) -> Answer[Assessment]:
    role = ChatReviewer(chat(server))
    return role.call(REQUEST) if how == "sync" else asyncio.run(role.acall(REQUEST))


ways = pytest.mark.parametrize("how", ["sync", "async"])


class TestReviewer:
    @ways
    def test_a_model_reviews_and_the_cost_is_kept(
        self, openai_server: OpenAIServer, how: str
    ) -> None:
        openai_server.then(Reply(GOOD, Usage(70, 30)))
        answer = reviewed(openai_server, how)
        assert (answer.value, answer.remarks) == (FOUND, ())
        assert answer.usage is not None
        assert answer.usage.input_tokens == 70
        (request,) = openai_server.requests
        assert "You review one topic" in request["messages"][0]["content"]
        assert "[m41] user: Which tea?" in request["messages"][1]["content"]
        assert request["messages"][-1]["content"].endswith("Tea\nAll about tea")

    @ways
    def test_an_unusable_answer_is_asked_for_once_more(
        self, openai_server: OpenAIServer, how: str
    ) -> None:
        openai_server.then(Reply("I'd rather not."), Reply(GOOD))
        answer = reviewed(openai_server, how)
        assert answer.value == FOUND
        assert [r.partition(":")[0] for r in answer.remarks] == ["asked again"]
        complaint = openai_server.requests[1]["messages"][-1]["content"]
        assert complaint == get_wording("en").complaint.format(form="<topic_review>")

    @ways
    def test_failures_are_raised(self, openai_server: OpenAIServer, how: str) -> None:
        openai_server.then(Empty(), Reply("no"), Status(500, message="down"))
        with pytest.raises(UnusableAnswerError):
            reviewed(openai_server, how)
        with pytest.raises(Exception, match="down"):
            reviewed(openai_server, how)

    def test_what_is_not_said_stays(self, openai_server: OpenAIServer) -> None:
        openai_server.then(Reply("<summary>Green was chosen.</summary>"))
        found = reviewed(openai_server, "sync").value
        assert (found.name, found.brief, found.once) == ("Tea", "All about tea", False)

    def test_what_is_too_long_is_cut(self, openai_server: OpenAIServer) -> None:
        openai_server.then(Reply(GOOD.replace("chosen", "chosen " * 2_000)))
        assert len(reviewed(openai_server, "sync").value.summary) <= 4_000


class TestMerger:
    @pytest.mark.parametrize(("text", "value"), [("YES", 1.0), ("No.", 0.0), ("是同一件事", 1.0)])
    def test_a_model_says_whether_two_topics_are_one(
        self, openai_server: OpenAIServer, text: str, value: float
    ) -> None:
        openai_server.then(Reply(text))
        assert ChatMerger(chat(openai_server)).call(PAIR).value == value
        _, one, other = openai_server.requests[0]["messages"]
        words = get_wording("en")
        assert one["content"] == f"{words.one_topic}\nTea\n2026-03-02 .. 2026-03-09\nAll about tea"
        assert other["content"] == f"{words.other_topic}\nRain\nIt rained."

    def test_an_unclear_answer_is_asked_for_once_more(self, openai_server: OpenAIServer) -> None:
        openai_server.then(Reply("Perhaps."), Reply("NO"), Reply("Perhaps."), Reply("Perhaps."))
        merger = ChatMerger(chat(openai_server))
        assert merger.call(PAIR).value == 0.0
        with pytest.raises(UnusableAnswerError):
            merger.call(PAIR)
        assert "used: YES / NO is missing" in openai_server.requests[1]["messages"][-1]["content"]


class TestEmbedded:
    reviewer = EmbeddedReviewer(HashingEmbedder(256))

    def review(self, messages: list[StoredMessage], uses: int = 0) -> Assessment:
        return self.reviewer.call(ReviewRequest("s", TEA, messages, "en", uses)).value

    def test_it_quotes_in_order(self) -> None:
        messages = said("Green tea is best", "The pot leaks", "Green tea from Uji", "Buy a pot")
        found = self.review(messages)
        lines = found.summary.splitlines()
        assert lines == [f"2026-03-02: {r.text}" for r in messages]
        assert found.name == "Tea"
        assert "Green tea" in found.brief

    def test_a_summary_is_short(self) -> None:
        found = self.review(said(*(f"Message {n} about tea " * 40 for n in range(60))))
        assert len(found.summary) < 2_300

    def test_a_question_that_is_over(self) -> None:
        messages = [*said("What is Uji?"), *said("A town near Kyoto. " * 9, role="assistant")]
        assert self.review(messages).once
        assert self.review(messages).importance < 0.3
        assert not self.review(messages, uses=1).once

    def test_what_the_user_tells_is_not_over(self) -> None:
        for text in (
            "I drink Uji only.",
            "我只喝宇治茶。",
            "We moved to Uji. Where is it?",
            "I'm 60 and earn 85,000, will that be a problem in Uji, you know?",
            "我六十岁了，搬到宇治还来得及吗？",
        ):
            found = self.review([*said(text), *said("Noted. " * 9, role="assistant")])
            assert not found.once
            assert found.importance >= ReviewPolicy().important
        for text in ("宇治是什么意思？", "Can you tell me what Uji is?", "IBM and Uji, how come?"):
            assert self.review(said(text)).once

    def test_what_was_only_asked_may_go_however_much_it_was(self) -> None:
        asked = said(*(f"What about tea {n}?" for n in range(90)))
        assert 0.3 < rate_importance(asked, 9) <= ReviewPolicy().important

    def test_importance_counts_rounds_and_uses(self) -> None:
        few, many = said("a", "b", "c", "d"), said(*"abcdefghij")
        assert rate_importance(few, 0) < rate_importance(many, 0)
        assert rate_importance(few, 0) < rate_importance(few, 1) < rate_importance(few, 5)
        assert rate_importance(said(*"ab" * 500), 900) <= 1
        assert rate_importance([], 0) == 0

    def test_a_topic_without_words_of_the_user(self) -> None:
        found = self.review(said("Noted.", role="assistant"))
        assert found.summary == found.brief != ""

    def test_the_merger_goes_by_likeness(self) -> None:
        for likeness, value in ((SAME_TOPIC, 1.0), (SAME_TOPIC - 0.01, 0.0)):
            request = MergeRequest("s", (TEA, RAIN), likeness, "en")
            assert EmbeddedMerger().call(request).value == value
