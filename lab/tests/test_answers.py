"""Answers of a reading model, and what a judging model says of them."""

from __future__ import annotations

from typing import get_args

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tables import each_row

from topicloom.lab import Language, load_prompt, open_model
from topicloom_app.recordings.conversations import Question
from topicloom_lab.comparison.measures import ANSWER_WORDS, judge, reply_to
from topicloom_lab.strategies import Context

QUESTION = Question(id="q", question="When does she arrive?", answer="16 May")
LANGUAGES: tuple[Language, ...] = get_args(Language)


def model(server: OpenAIServer) -> BaseChatModel:
    return open_model("openai:gpt-4o", base_url=server.base_url, api_key="test", max_retries=0)


def test_the_reader_sees_the_context_and_then_the_question(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(" 16 May\n"))
    said = (HumanMessage("She arrives on 16 May.", name="Yue"), SystemMessage("Noted."))
    reply = reply_to(model(openai_server), Context(said, ("m1",)), QUESTION.question, "en")
    assert reply == "16 May"
    system, asked = (m["content"] for m in openai_server.requests[0]["messages"])
    assert system == load_prompt("answer", "en")
    assert asked == (
        "=== What was said ===\nYue: She arrives on 16 May.\nNoted.\n\n"
        "=== The question ===\nWhen does she arrive?"
    )


@pytest.mark.parametrize(("said", "verdict"), [("YES", True), ("No.", False), ("Perhaps", None)])
def test_the_judge_says_yes_or_no_or_nothing(
    openai_server: OpenAIServer, said: str, verdict: bool | None
) -> None:
    openai_server.then(Reply(said))
    assert judge(model(openai_server), QUESTION, "on the 16th", "zh") is verdict
    system, case = (m["content"] for m in openai_server.requests[0]["messages"])
    assert system == load_prompt("judge", "zh")
    assert case.endswith("=== 标准答案 ===\n16 May\n\n=== 给出的回答 ===\non the 16th")


@each_row("language", LANGUAGES)
def test_prompts_quote_the_lines_that_follow_them(language: Language) -> None:
    words = ANSWER_WORDS[language]
    assert words.context in load_prompt("answer", language)
    assert words.question in load_prompt("answer", language)
    for line in (words.question, words.expected, words.given):
        assert line in load_prompt("judge", language)
