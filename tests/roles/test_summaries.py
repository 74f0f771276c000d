"""Summaries of segments by whole messages."""

from __future__ import annotations

from topicloom import StoredMessage, count_budget_tokens
from topicloom.roles.brief import summarize_by_extracts
from topicloom.search.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(256)


def messages(*texts: str) -> list[StoredMessage]:
    return [
        StoredMessage(seq=n, role="user", text=t, time="") for n, t in enumerate(texts, start=1)
    ]


def test_an_extract_has_whole_messages_in_their_order() -> None:
    said = messages(*(f"the oak worktop, offer {n}, in detail" for n in range(9)), "hello")
    text = summarize_by_extracts(EMBEDDER, count_budget_tokens, 40)(said)
    lines = text.splitlines()
    assert 1 < len(lines) < 9
    assert set(lines) <= {r.line for r in said}
    assert lines == sorted(lines, key=[r.line for r in said].index)
    assert count_budget_tokens(text) <= 40


def test_a_message_that_does_not_fit_is_cut() -> None:
    text = summarize_by_extracts(EMBEDDER, count_budget_tokens, 20)(messages("oak " * 200))
    assert text.startswith("user: oak oak")
    assert text.endswith("...")
    assert count_budget_tokens(text) <= 24


def test_of_nothing_said_there_is_nothing_to_say() -> None:
    assert summarize_by_extracts(EMBEDDER, count_budget_tokens, 20)(messages(" ", "")) == ""
