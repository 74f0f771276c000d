"""HotpotQA as a chat: the files, their errors, and the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topicloom import NotAConversationError
from topicloom_lab.generators import generate

PARAGRAPHS = [
    {"title": "Oak", "text": "A tree."},
    {"title": "Elm", "text": "Another tree."},
    {"title": "Ash", "text": "A third tree."},
]
QUESTION = {
    "id": "q1",
    "type": "comparison",
    "question": "Are the oak and the ash both trees?",
    "answer": "yes",
    "gold_titles": ["Oak", "Ash"],
    "level": "hard",
}


def folder(path: Path, corpus: list[Any], questions: list[Any]) -> Path:
    for name, rows in (("corpus", corpus), ("questions", questions)):
        text = "".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows)
        (path / f"hotpotqa_dev_{name}.jsonl").write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("message", [1, 2])
def test_every_paragraph_is_told_and_gold_ones_are_evidence(tmp_path: Path, message: int) -> None:
    place = folder(tmp_path, PARAGRAPHS, [QUESTION])
    (chat,) = generate(f"hotpotqa:folder={place},message={message},seed=3")
    told = {m.id: m.text for m in chat.messages if m.role == "user"}
    assert len(told) == -(-3 // message)
    for paragraph in PARAGRAPHS:
        line = f"{paragraph['title']}: {paragraph['text']}"
        assert sum(line in text for text in told.values()) == 1
    (question,) = chat.questions
    assert (question.category, question.answer) == ("comparison", "yes")
    shown = "\n".join(told[i] for i in question.evidence)
    assert "Oak: " in shown
    assert "Ash: " in shown


def test_the_seed_settles_the_order(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        [{"title": str(n), "text": "x"} for n in range(30)],
        [{**QUESTION, "gold_titles": ["7"]}],
    )
    one, again, other = (next(generate(f"hotpotqa:folder={place},seed={s}")) for s in (1, 1, 2))
    assert one == again
    assert [m.text for m in one.messages] != [m.text for m in other.messages]


@pytest.mark.parametrize(
    ("corpus", "questions", "said"),
    [
        (
            ["{"],
            [QUESTION],
            r"corpus\.jsonl, line 1 is no paragraph: .*Wanted: {\"title\", \"text\"}",
        ),
        (
            [{"title": "Oak"}],
            [QUESTION],
            r"corpus\.jsonl, line 1 is no paragraph: text: Field required",
        ),
        ([], [QUESTION], r"corpus\.jsonl is empty"),
        (
            PARAGRAPHS,
            [{"id": "q"}],
            r"questions\.jsonl, line 1 is no question: question: Field required",
        ),
        (PARAGRAPHS[:1], [QUESTION], r"question 'q1' rests on 'Ash', which is not in it"),
    ],
)
def test_a_file_that_holds_something_else_is_named(
    tmp_path: Path, corpus: list[Any], questions: list[Any], said: str
) -> None:
    place = folder(tmp_path, corpus, questions)
    with pytest.raises(NotAConversationError, match=said):
        list(generate(f"hotpotqa:folder={place}"))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotAConversationError, match=r"has no hotpotqa_\*_corpus\.jsonl"):
        generate(f"hotpotqa:folder={tmp_path}")
    folder(tmp_path, PARAGRAPHS, [QUESTION])
    (tmp_path / "hotpotqa_dev_questions.jsonl").unlink()
    with pytest.raises(NotAConversationError, match=r"questions\.jsonl cannot be read"):
        list(generate(f"hotpotqa:folder={tmp_path}"))
