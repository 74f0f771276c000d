"""Which sentences a reply rests on: by meaning and words, in either language, one for a message."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom import StoredMessage, default_embedder
from topicloom_app.ui.grounds import Ground, find_grounds


def say(number: int, text: str) -> StoredMessage:
    return StoredMessage(
        seq=number, role="user", text=text, time=f"2026-03-{number:02}T09:00:00+01:00"
    )


def find(question: str, reply: str, *texts: str) -> Sequence[Ground]:
    quoted = [say(number, text) for number, text in enumerate(texts, 1)]
    return find_grounds(question, reply, quoted, default_embedder())


def test_the_sentence_that_a_reply_repeats_is_first() -> None:
    found = find(
        "What did the oak cost?",
        "The oak worktop was 1,180 euros. Good night!",
        "Good night.",
        "It rains. Frau Hagen wants 1,180 euros for the oak worktop. I like it!",
        "I ran 11 km with a dog behind me.",
    )
    assert found[0].message.id == "m2"
    assert found[0].sentence == "Frau Hagen wants 1,180 euros for the oak worktop."
    assert [g.score for g in found] == sorted((g.score for g in found), reverse=True)
    assert sorted(g.message.seq for g in found) == [1, 2, 3], "one for each message"


def test_another_language_counts_by_its_meaning() -> None:
    found = find(
        "Which illness does my mother have?",
        "She has gout and must not eat seafood.",
        "I like the tiles in celadon green.",
        "我妈的保险怎么选？她有痛风，医生让她不碰海鲜。",
    )
    assert found[0].message.id == "m2"
    assert found[0].sentence == "她有痛风，医生让她不碰海鲜。"


def test_a_reply_or_a_text_that_is_empty_is_no_mistake() -> None:
    assert find("Hm?", "Yes.") == []
    (only,) = find("Where is the boat?", "", "")
    assert (only.sentence, only.score) == ("", 0.0)
    assert find("Where is the boat?", "", "The boat is at the jetty. Bye.")[0].sentence == (
        "The boat is at the jetty."
    )
    assert len(find("x", "y", "word " * 5_000)[0].sentence) <= 301
