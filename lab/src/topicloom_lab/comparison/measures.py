"""The measures of a context: the evidence in it, and the answers that are read from it."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from topicloom import UnusableAnswerError, count_budget_tokens
from topicloom.lab import CJK_RUN, Language, get_text, load_prompt, parse_verdict, sentences_of
from topicloom_app.recordings.conversations import Question
from topicloom_lab.strategies.base import Context

_ARTICLES = frozenset({"a", "an", "the"})
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}，。！？；：、“”‘’（）《》…—]")


class QuestionResult(BaseModel, frozen=True):
    """The measures of one question."""

    question: str
    """Its id."""
    category: str
    evidence: tuple[str, ...]
    """Ids of the messages that the answer rests on, each once."""
    found: tuple[str, ...]
    """Those whose whole text stood in the context."""
    shown: float | None = None
    """Share of the evidence's tokens in the context; None if there is no evidence."""
    answer_in: bool | None
    """True if the expected answer stood in the context, word for word; None if there is none."""
    tokens: int
    """Tokens of the context."""
    evidence_tokens: int | None = None
    """Those of them that are evidence, excerpts included; None in results of earlier versions."""
    messages: int
    """Messages of the prompt, without instructions and question."""
    originals: int
    """Originals that stood in it whole."""
    calls: Mapping[str, int] = {}
    """Calls of models by role."""
    seconds: float
    """Wall time until the context was laid out."""
    cpu_seconds: float
    """CPU time of the process meanwhile."""
    reply: str | None = None
    """The reading model's answer; None if none is set."""
    exact: bool | None = None
    """True if that is the expected answer, but for case, punctuation and articles."""
    f1: float | None = None
    """The overlap of their words."""
    judged: bool | None = None
    """True if the judging model takes it for right; None if none is set or it did not say."""

    @property
    def recall(self) -> float:
        """Share of the evidence that was found; 1 if there is none to find."""
        return len(self.found) / len(self.evidence) if self.evidence else 1.0

    @property
    def whole(self) -> bool:
        """True if all of the evidence was found."""
        return len(self.found) == len(self.evidence)

    @property
    def oracle(self) -> bool:
        """True if a reader that overlooks nothing could answer: an oracle, not a model.

        It needs all of the evidence, or the answer itself.
        """
        return self.whole or bool(self.answer_in)


def answer_words(text: str) -> list[str]:
    """Words of an answer as SQuAD compares them: no case, punctuation or articles; CJK characters.

    Source: Rajpurkar et al. 2016, the official script for version 1.1.
    """
    plain = _PUNCTUATION.sub("", text.lower())
    spaced = CJK_RUN.sub(lambda run: f" {' '.join(run[0])} ", plain)
    return [word for word in spaced.split() if word not in _ARTICLES]


def exact_match(reply: str, answer: str) -> bool:
    """True if two answers have the same words in the same order."""
    return answer_words(reply) == answer_words(answer)


def f1_score(reply: str, answer: str) -> float:
    """Harmonic mean of precision and recall of words, 0 to 1; of two empty answers 1."""
    given, wanted = answer_words(reply), answer_words(answer)
    if not (given and wanted):
        return float(given == wanted)
    shared = (Counter(given) & Counter(wanted)).total()
    return 2 * shared / (len(given) + len(wanted))


def answer_stands_in(text: str, answer: str) -> bool | None:
    """True if the words of an answer stand in a text, in a row; None for an empty answer."""
    wanted = answer_words(answer)
    if not wanted:
        return None
    return f" {' '.join(wanted)} " in f" {' '.join(answer_words(text))} "


def evidence_in(
    evidence: Sequence[str], sources: Sequence[str], texts: Mapping[str, str], context: str
) -> tuple[str, ...]:
    """Ids of the evidence whose whole text stands in a context, checked word for word.

    The sources are ids of originals that a strategy says it quotes; texts are by id.
    """
    quoted = set(sources)
    wanted = dict.fromkeys(evidence)
    return tuple(i for i in wanted if i in quoted and texts[i] in context)


@dataclass(frozen=True, slots=True)
class EvidenceTokens:
    """Tokens of a question's evidence: all of them, and those that a context shows."""

    held: int
    """Tokens of the sentences that stand in the context, word for word."""
    total: int

    @property
    def share(self) -> float | None:
        """The share that the context shows; None without evidence."""
        return self.held / self.total if self.total else None


def count_evidence(texts: Iterable[str], context: str) -> EvidenceTokens:
    """Count the tokens of some texts whose sentences stand in a context, excerpts included."""
    said = [text[slice(*span)] for text in texts for span in sentences_of(text)]
    tokens = [count_budget_tokens(sentence) for sentence in said]
    held = sum(n for n, sentence in zip(tokens, said, strict=True) if sentence in context)
    return EvidenceTokens(held, sum(tokens))


def share_of_evidence(counts: Iterable[tuple[int, int | None]]) -> float | None:
    """The precision of some contexts: the share of all their tokens that is evidence.

    Args:
        counts: The tokens of each, and those of its evidence; None where they were not counted.

    Returns:
        The share; None if there are no tokens, or none were counted.
    """
    known = [(tokens, held) for tokens, held in counts if held is not None]
    shown = sum(tokens for tokens, _ in known)
    return sum(held for _, held in known) / shown if shown else None


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
    answer = model.invoke([SystemMessage(load_prompt("answer", language)), HumanMessage(asked)])
    return get_text(answer).strip()


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
    answer = model.invoke([SystemMessage(load_prompt("judge", language)), HumanMessage(case)])
    try:
        return parse_verdict(get_text(answer))
    except UnusableAnswerError:
        return None
