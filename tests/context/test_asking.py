"""Prompts of the splitter, the router and the rewriter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage

from topicloom.context.token_count import EstimatingCounter
from topicloom.context.windows import PromptWindow
from topicloom.prompts.loader import load_prompt
from topicloom.roles.rewriter import RewriteRequest, build_rewriter_prompt
from topicloom.roles.router import RouteRequest, build_router_prompt
from topicloom.roles.splitter import SplitRequest, build_splitter_prompt
from topicloom.state.language import Language
from topicloom.state.rounds import group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

COUNTER = EstimatingCounter("o200k")
WINDOW = PromptWindow(COUNTER, 8_000)
TOPICS = [
    Topic(id="t1", name="Oak\ntable", brief="A table\nof oak.", first_at="2026-03-01T08:00:00"),
    Topic(id="t2", name="Kyoto", first_at="2026-03-02T08:00:00", last_at="2026-03-05T09:00:00"),
]


def stored(count: int, words: int = 1) -> list[StoredMessage]:
    return [
        StoredMessage(
            seq=n,
            role="user" if n % 2 else "assistant",
            text=f"word{n} " * words,
            time="2026-03-01T10:00:00+00:00",
        )
        for n in range(1, count + 1)
    ]


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(m.content) for m in messages]


def tokens(messages: list[BaseMessage]) -> int:
    return sum(map(COUNTER.message, messages))


def to_split(
    said: list[StoredMessage],
    topics: list[Topic],
    active: frozenset[str] = frozenset(),
    language: Language = "en",
    opens: Collection[int] = (),
) -> list[BaseMessage]:
    rounds = [replace(b, ruling="opens" if b.first in opens else None) for b in group_rounds(said)]
    odds = [0.0] * len(rounds)
    request = SplitRequest("s", rounds, odds, topics, None, active, None, language)
    return build_splitter_prompt(request, WINDOW)


def to_route(said: list[StoredMessage], topics: list[Topic], when: str | None) -> list[BaseMessage]:
    return build_router_prompt(RouteRequest("s", "oak", said, topics, {}, when, "en"), WINDOW)


def test_the_splitter_sees_what_an_arbiter_parted_and_then_the_topics() -> None:
    messages = to_split(stored(6), TOPICS, frozenset({"t2"}), opens=[5])
    system, said, listed = texts(messages)
    assert system == load_prompt("splitter", "en")
    assert said.splitlines() == [
        "-- 2026-03-01 (Sunday) --",
        "[m1] user: word1 ",
        "[m2] assistant: word2 ",
        "[m3] user: word3 ",
        "[m4] assistant: word4 ",
        "-- another matter begins here --",
        "[m5] user: word5 ",
        "[m6] assistant: word6 ",
    ]
    assert said.splitlines()[5] in system
    assert listed == (
        "=== Topics so far ===\n[t1] (dormant) Oak table: A table of oak.\n[t2] (active) Kyoto"
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_split_has_no_topics(language: Language) -> None:
    listed = texts(to_split(stored(2), [], language=language))[-1]
    assert listed.splitlines()[1] in ("(none)", "（无）")


def test_the_splitter_sees_every_message_of_a_large_tail() -> None:
    messages = to_split(stored(60, words=300), TOPICS)
    said = texts(messages)[1]
    assert all(f"[m{n}]" in said for n in range(1, 61))
    assert tokens(messages) <= 8_000


def test_short_messages_are_whole_beside_long_ones() -> None:
    short, long = stored(58), stored(60, words=2_000)[58:]
    said = texts(to_split([*short, *long], TOPICS))[1]
    assert all(f"[m{n}] user: word{n} " in said for n in range(1, 59, 2))
    assert said.count("word59") > 500


def test_no_notice_is_longer_than_what_it_stands_for() -> None:
    said = texts(to_split(stored(200, words=40), TOPICS))[1]
    assert "left out" not in said
    assert all(f"word{n} word{n}" in said for n in range(1, 201))


def test_of_a_thousand_topics_those_that_come_first_are_listed() -> None:
    topics = [Topic(id=f"t{n}", name=f"Topic {n}", brief="Of it.") for n in range(1, 1_001)]
    messages = to_split(stored(40), topics)
    listed = texts(messages)[-1].splitlines()[1:]
    assert 200 < len(listed) < 1_000
    assert [line.partition("]")[0] for line in listed] == [
        f"[t{n}" for n in range(1, len(listed) + 1)
    ]
    assert tokens(messages) <= 8_000


def test_many_topics_are_listed_with_the_beginnings_of_their_briefs() -> None:
    topics = [Topic(id=f"t{n}", name=f"Topic {n}", brief="begins " * 200) for n in range(1, 101)]
    messages = to_route(stored(4), topics, None)
    listed = texts(messages)[-1]
    assert all(f"[t{n}] Topic {n}: begins" in listed for n in range(1, 101))
    assert tokens(messages) <= 8_000


def test_the_router_sees_recent_messages_then_query_then_topics() -> None:
    messages = to_route(stored(1), TOPICS, "2026-03")
    system, recent, asked = texts(messages)
    assert system == load_prompt("router", "en")
    assert recent == "-- 2026-03-01 (Sunday) --\n[m1] user: word1 "
    assert asked.splitlines() == [
        "=== Looking for ===",
        "oak",
        "Days: 2026-03",
        "=== Topics so far ===",
        "[t1] Oak table (2026-03-01): A table of oak.",
        "[t2] Kyoto (2026-03-02 .. 2026-03-05)",
    ]


def test_the_rewriter_sees_what_fits_and_then_the_message() -> None:
    said = stored(100, words=100)
    request = RewriteRequest("s", "And there?", said, "en")
    messages = build_rewriter_prompt(request, PromptWindow(COUNTER, 3_000))
    system, recent, asked = texts(messages)
    assert system == load_prompt("rewriter", "en")
    assert recent.startswith("-- ")
    assert "earlier messages are not shown" in recent
    assert "[m100]" in recent
    assert asked == "=== The message ===\nAnd there?"
    assert tokens(messages) <= 3_000
