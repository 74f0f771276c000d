"""The messages of `topicloom eval idle`: well formed, and of the conversations they name."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from talks import talk

from topicloom import ConfigurationError, NotAConversationError
from topicloom.lab import CJK_RUN
from topicloom_app import Conversation, cut_rounds, load_conversations
from topicloom_lab.comparison.config import load_source
from topicloom_lab.idle.messages import (
    OPENING,
    WrittenMessage,
    load_messages,
    load_openings,
    place_messages,
)

DATA = Path(os.environ.get("TOPICLOOM_DATA", Path(__file__).parents[3] / "shared" / "data"))
REALMEM = DATA / "memory" / "realmem_dev.jsonl.xz"
WRITTEN = load_messages()


def check_places(conversation: Conversation) -> None:
    """Each message comes between two rounds, and its evidence is what one of them said."""
    ends = {round_.ids[-1] for round_ in cut_rounds(conversation)}
    openings = load_openings()
    placed = place_messages(conversation, WRITTEN, openings)
    ours = [m for m in WRITTEN if m.conversation == conversation.id]
    assert len(placed) == len(ours) + len(openings.get(conversation.id, ()))
    assert all(m.after in ends for m in ours)
    assert all(p.rounds > 0 for p in placed)


def test_there_are_120_of_each_kind_in_both_languages() -> None:
    counts = Counter((m.kind, m.lang) for m in WRITTEN)
    assert counts["idle", "en"] == counts["idle", "zh"] == 60
    assert counts["short", "en"] + counts["short", "zh"] == 120
    assert counts["short", "zh"] >= 40
    assert len({m.id for m in WRITTEN}) == len(WRITTEN) == 240
    assert len({m.conversation for m in WRITTEN}) == 3
    categories = {kind: {m.category for m in WRITTEN if m.kind == kind} for kind, _ in counts}
    assert categories["idle"] == {"thanks", "small talk", "knowledge", "errand", "near"}
    assert categories["short"] == {"follow-up", "pronoun", "other", "again", "return"}


def test_messages_are_of_their_language_and_kind() -> None:
    for message in WRITTEN:
        assert (message.lang == "zh") == bool(CJK_RUN.search(message.text)), message.id
        assert bool(message.evidence) == (message.kind == "short"), message.id
        assert all(message.evidence), message.id
        if message.kind == "short" and message.lang == "en":
            assert len(message.text.split()) <= 6, message.id
        elif message.kind == "short":
            assert len(re.findall(r"\w", message.text)) <= 12, message.id


def test_those_of_the_sample_fit_it() -> None:
    (sample,) = load_source("sample")
    check_places(sample)
    assert sum(m.conversation == sample.id for m in WRITTEN) == 96


@pytest.mark.skipif(not REALMEM.is_file(), reason=f"no {REALMEM}: set TOPICLOOM_DATA")
def test_those_of_realmem_fit_it() -> None:
    people = {c.id: c for c in load_conversations(REALMEM)}
    assert set(load_openings()) == set(people)
    assert {m.conversation for m in WRITTEN} < {"lake_house", *people}
    for person in people.values():
        check_places(person)
        roles = {m.id: m.role for m in person.messages}
        assert all(roles[opening] == "user" for opening in load_openings()[person.id])


def written(**given: object) -> WrittenMessage:
    row = {"id": "x", "conversation": "talk", "lang": "en", "kind": "short", "category": "return"}
    return WrittenMessage.model_validate(row | {"text": "And that?", "after": "a1"} | given)


def test_messages_come_in_the_order_of_their_places() -> None:
    conversation = talk()
    placed = place_messages(
        conversation, [written(after="a2"), written(evidence=[["u1"]])], {"talk": ("u2",)}
    )
    assert [(p.message.category, p.rounds) for p in placed] == [
        ("return", 1),
        (OPENING, 1),
        ("return", 2),
    ]
    assert placed[1].message.text == {m.id: m.text for m in conversation.messages}["u2"]
    assert place_messages(conversation, [written(conversation="other")], {}) == []


def test_what_the_conversation_does_not_have_is_named() -> None:
    with pytest.raises(ConfigurationError, match="'z9', which conversation 'talk' does not have"):
        place_messages(talk(), [written(after="z9")], {})
    with pytest.raises(ConfigurationError, match="its evidence 'a2' is said later"):
        place_messages(talk(), [written(evidence=[["u1", "a2"]])], {})


def test_a_line_that_is_no_message_is_named(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    row = written(evidence=[["u1"]]).model_dump()
    file.write_text(f"{json.dumps(row)}\n\n{json.dumps(row | {'kind': 'long'})}\n", "utf-8")
    with pytest.raises(NotAConversationError, match=r"own.jsonl, line 3 is no message to ask"):
        load_messages(file)
    file.write_text(f"{json.dumps(row)}\n", "utf-8")
    assert load_messages(file) == (written(evidence=[["u1"]]),)
