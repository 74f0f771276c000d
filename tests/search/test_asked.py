"""Asking for what was said before: what counts as asking, and which time is meant."""

from __future__ import annotations

from datetime import UTC, datetime

from tables import each_row

from topicloom.search.time_expressions import asked_for, parse_when

NOW = datetime(2026, 4, 3, 9, tzinfo=UTC)


@each_row(
    ("text", "days"),
    [
        ("What did we talk about on 3 March?", "2026-03-03"),
        ("What did we discuss on March 3rd, 2025?", "2025-03-03"),
        ("Remind me what I said in March 2024.", "2024-03-01 to 2024-03-31"),
        ("what did we talk about two weeks ago", "2026-03-16 to 2026-03-22"),
        ("Find the recipe we discussed last month", "2026-03-01 to 2026-03-31"),
        ("Did I mention it on Monday?", "2026-03-30"),
        ("What did we say on 3 March?", "2026-03-03"),
        ("Tell me what we said last month", "2026-03-01 to 2026-03-31"),
        ("我们3月3日说了什么？", "2026-03-03"),
        ("2026-03-02 我们聊了什么？", "2026-03-02"),
        ("3月2日我们聊了什么？", "2026-03-02"),
        ("帮我找一下上个月讨论的预算", "2026-03-01 to 2026-03-31"),
        ("三个月前我们讨论过什么", "2026-01-01 to 2026-01-31"),
        ("我去年提到的那本书叫什么？", "2025-01-01 to 2025-12-31"),
        ("前阵子聊的那家店在哪儿？", "2026-02-02 to 2026-03-31"),
        ("国庆节我们聊过什么？", "2025-10-01 to 2025-10-07"),
        ("去年国庆我们聊了什么", "2025-10-01 to 2025-10-07"),
        ("What did we talk about at Christmas?", "2025-12-24 to 2025-12-26"),
        ("What did I say about the boiler on the weekend?", "2026-03-28 to 2026-03-29"),
        ("the book I mentioned last year", "2025-01-01 to 2025-12-31"),
    ],
)
def test_asked_for_by_time(text: str, days: str) -> None:
    request = asked_for(text, NOW)
    assert request is not None
    assert request.include_archived
    assert request.query == text
    assert request.when is not None
    assert str(parse_when(request.when, NOW)) == days


@each_row(
    "text",
    [
        "Have I ever worked with restaurant datasets before?",
        "Which things did I bring up throughout our conversations?",
        "Did we ever talk about the boiler?",
        "我有没有说过我对花生过敏？",
        "我们聊过这个吗？",
    ],
)
def test_asked_for_without_time(text: str) -> None:
    request = asked_for(text, NOW)
    assert request is not None
    assert request.when is None


@each_row(
    "text",
    [
        "What should I cook on 3 March?",
        "I talked to my boss about it last month.",
        "Let us discuss the budget of 2025.",
        "The conversation with her was odd.",
        "上个月我去了北京。",
        "帮我找一家餐馆",
        "我们讨论一下预算",
        "",
    ],
)
def test_not_asked_for(text: str) -> None:
    assert asked_for(text, NOW) is None


def test_a_time_to_come_is_not_when_it_was_said() -> None:
    request = asked_for("What did I say about the trip on 3 March 2027?", NOW)
    assert request is not None
    assert request.when is None
