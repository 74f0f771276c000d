"""Questions answered from a context by a chat model, and answers judged by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from topicloom.errors import UnusableAnswerError
from topicloom.evaluation.conversations import Question
from topicloom.evaluation.strategies.base import Context
from topicloom.prompts.loader import prompt
from topicloom.roles.values import parse_verdict
from topicloom.state.records import text_of
from topicloom.state.session import Language


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """The lines that the prompts `answer` and `judge` refer to."""

    context: str
    question: str
    expected: str
    given: str


ANSWER_WORDS: Mapping[Language, AnswerWords] = MappingProxyType(
    {
        "en": AnswerWords(
            "=== What was said ===",
            "=== The question ===",
            "=== The expected answer ===",
            "=== The answer given ===",
        ),
        "zh": AnswerWords(
            "=== 说过的话 ===", "=== 问题 ===", "=== 标准答案 ===", "=== 给出的回答 ==="
        ),
    }
)


def reply_to(model: BaseChatModel, context: Context, question: str, language: Language) -> str:
    """Have a model answer a question from a context.

    Raises:
        Exception: Whatever the model's client raises.
    """
    words = ANSWER_WORDS[language]
    asked = f"{words.context}\n{context.text}\n\n{words.question}\n{question}"
    answer = model.invoke([SystemMessage(prompt("answer", language)), HumanMessage(asked)])
    return text_of(answer).strip()


def judge(model: BaseChatModel, question: Question, reply: str, language: Language) -> bool | None:
    """Have a model say whether a reply is right; None if it says neither yes nor no.

    Raises:
        Exception: Whatever the model's client raises.
    """
    words = ANSWER_WORDS[language]
    case = (
        f"{words.question}\n{question.question}\n\n{words.expected}\n{question.answer}\n\n"
        f"{words.given}\n{reply}"
    )
    answer = model.invoke([SystemMessage(prompt("judge", language)), HumanMessage(case)])
    try:
        return parse_verdict(text_of(answer))
    except UnusableAnswerError:
        return None
