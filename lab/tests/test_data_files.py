"""Every file of the data folder loads, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tables import each_row

from topicloom_app import load_conversations
from topicloom_lab.generators import generate
from topicloom_lab.segmentation import load_dialogues
from topicloom_lab.threads import load_threads

DATA = Path(os.environ.get("TOPICLOOM_DATA", Path(__file__).parents[3] / "shared" / "data"))

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}: set TOPICLOOM_DATA")


def files(kind: str) -> list[Path]:
    return sorted((DATA / kind).glob("*.jsonl*"))


@each_row("path", files("memory"))
def test_conversations_with_questions(path: Path) -> None:
    for conversation in load_conversations(path):
        known = {m.id for m in conversation.messages}
        assert conversation.questions
        assert all(known.issuperset(q.evidence) for q in conversation.questions)


@each_row("path", files("segmentation"))
def test_dialogues_with_segments(path: Path) -> None:
    assert all(d.utterances for d in load_dialogues(path))


@each_row("path", files("threads"))
def test_conversations_with_threads(path: Path) -> None:
    for conversation in load_threads(path):
        assert any(m.thread is not None for m in conversation.messages)


def test_hotpotqa_becomes_a_chat_with_questions() -> None:
    (chat,) = generate(f"hotpotqa:folder={DATA / 'tasks'}")
    assert len(chat.questions) == 100
    assert sum(m.role == "user" for m in chat.messages) == 991
    assert all(len(q.evidence) == 2 for q in chat.questions)
