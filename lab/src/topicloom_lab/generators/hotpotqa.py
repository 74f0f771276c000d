"""HotpotQA (Yang et al., 2018) as a long chat: paragraphs, then questions about them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, validate_call

from topicloom import NotAConversationError
from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_app.recordings.records import read_records
from topicloom_lab.generators.spec import make_chat


class Paragraph(BaseModel, frozen=True):
    """A paragraph of the corpus."""

    title: str = Field(min_length=1)
    """No other paragraph has it."""
    text: str = Field(min_length=1)


class HotpotQuestion(BaseModel, frozen=True, extra="ignore"):
    """A question over some paragraphs."""

    id: str
    type: str = ""
    """`bridge` or `comparison`."""
    question: str
    answer: str
    gold_titles: tuple[str, ...] = Field(min_length=1)
    """Titles of the paragraphs that the answer rests on."""


@validate_call
def hotpotqa(
    *,
    folder: Path,
    message: Annotated[int, Field(ge=1)] = 1,
    seed: int = 0,
) -> Iterator[Conversation]:
    """HotpotQA: its paragraphs one after the other, then all its questions.

    Args:
        folder: Where `hotpotqa_*_corpus.jsonl` and `hotpotqa_*_questions.jsonl` are.
        message: Paragraphs in a message.
        seed: Where chance begins: the order of the paragraphs.

    Yields:
        One conversation for each corpus; the messages with the gold paragraphs are evidence.

    Raises:
        NotAConversationError: If a file is missing or holds something else.
    """
    found = sorted(folder.glob("hotpotqa_*_corpus.jsonl"))
    if not found:
        raise NotAConversationError("{folder} has no hotpotqa_*_corpus.jsonl", folder=folder)
    return (_conversation(path, message, seed) for path in found)


def _conversation(corpus: Path, message: int, seed: int) -> Conversation:
    paragraphs = list(read_records(corpus, Paragraph, "paragraph", '{"title", "text"}'))
    name = corpus.name.removesuffix("_corpus.jsonl")
    asked = corpus.with_name(f"{name}_questions.jsonl")
    wanted = '{"id", "question", "answer", "gold_titles"}'
    questions = read_records(asked, HotpotQuestion, "question", wanted)
    random.Random(f"hotpotqa-{seed}").shuffle(paragraphs)
    places = {p.title: f"u{i // message + 1}" for i, p in enumerate(paragraphs)}
    texts = [f"{p.title}: {p.text}" for p in paragraphs]
    groups = (texts[i : i + message] for i in range(0, len(texts), message))
    return Conversation(
        id=f"{name}-{seed}",
        messages=tuple(make_chat("\n\n".join(group) for group in groups)),
        questions=tuple(_question(q, places, corpus) for q in questions),
    )


def _question(question: HotpotQuestion, places: dict[str, str], corpus: Path) -> Question:
    missing = [title for title in question.gold_titles if title not in places]
    if missing:
        raise NotAConversationError(
            "{corpus}: question {question!r} rests on {missing!r}, which is not in it",
            corpus=corpus,
            question=question.id,
            missing=missing[0],
        )
    return Question(
        id=question.id,
        category=question.type,
        question=question.question,
        answer=question.answer,
        evidence=tuple(dict.fromkeys(places[title] for title in question.gold_titles)),
    )
