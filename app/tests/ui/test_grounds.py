"""What a reply rests on: what it quotes, names or says again, in either language."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom import StoredMessage, default_embedder
from topicloom_app.ui.grounds import Ground, Place, find_grounds


def say(number: int, text: str) -> StoredMessage:
    return StoredMessage(
        seq=number, role="user", text=text, time=f"2026-03-{number:02}T09:00:00+01:00"
    )


def find(question: str, reply: str, *texts: str, only_quotes: bool = False) -> Sequence[Ground]:
    quoted = [say(number, text) for number, text in enumerate(texts, 1)]
    embedder = default_embedder()
    return find_grounds(question, reply, {"quoted": quoted}, embedder, only_quotes=only_quotes)


def list_leads(found: Sequence[Ground]) -> list[tuple[str, str]]:
    return [(ground.message.id, ground.says) for ground in found if ground.says]


def test_a_reply_rests_on_the_sentence_that_it_repeats_and_on_no_other() -> None:
    found = find(
        "What did the oak cost?",
        "The oak worktop was 1,180 euros. Good night!",
        "Good night.",
        "It rains. Frau Hagen wants 1,180 euros for the oak worktop. I like it!",
        "I ran 11 km with a dog behind me.",
    )
    assert list_leads(found) == [("m2", "The oak worktop was 1,180 euros.")]
    assert found[0].sentence == "Frau Hagen wants 1,180 euros for the oak worktop."
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


def test_a_reply_of_a_word_is_read_with_its_question() -> None:
    said = "The ferry leaves at nine.", "Tom has a new saw."
    assert list_leads(find("When does the ferry leave?", "Nine.", *said)) == [("m1", "Nine.")]


def test_a_reply_without_a_model_is_its_quotes_and_nothing_else() -> None:
    reply = "Closest to this:\n– 2026-03-02, you: “The ferry leaves at nine. I said “no”.”"
    said = "The ferry leaves at nine.", "He waits.\nThe ferry leaves at nine. I said “no”.", "Nine."
    found = find("When does it leave?", reply, *said, only_quotes=True)
    assert list_leads(found) == [("m2", "The ferry leaves at nine. I said “no”.")]
    earlier = f"No model is set. {reply}".replace("this:", "this in what was said:")
    assert list_leads(find("And when?", reply, "Nine.", earlier, only_quotes=True)) == []
    kept = "Kept. My search found nothing close to this."
    assert list_leads(find("When does the ferry leave?", kept, *said, only_quotes=True)) == []


def test_what_a_model_names_by_its_id_is_certain() -> None:
    found = find("And?", "The saw, then. It was a gift [m2].", "I ran 11 km.", "Tom has a new saw.")
    assert list_leads(found)[0] == ("m2", "It was a gift [m2].")


def test_what_the_prompt_showed_counts_where_nothing_was_quoted() -> None:
    shown: dict[Place, list[StoredMessage]] = {
        "in_view": [say(1, "My lucky number is 41.")],
        "quoted": [say(2, "It rains today.")],
    }
    embedder = default_embedder()
    found = find_grounds("Which?", "Your lucky number is 41.", shown, embedder)
    assert [(g.message.id, g.place, bool(g.says)) for g in found] == [
        ("m1", "in_view", True),
        ("m2", "quoted", False),
    ]


def test_a_reply_or_a_text_that_is_empty_is_no_mistake() -> None:
    assert find("Hm?", "Yes.") == []
    (only,) = find("Where is the boat?", "", "")
    assert (only.sentence, only.says) == ("", "")
    assert find("Where?", "At the jetty.", "The boat is at the jetty. Bye.")[0].sentence == (
        "The boat is at the jetty."
    )
    assert len(find("x", "y", "word " * 5_000)[0].sentence) <= 301
