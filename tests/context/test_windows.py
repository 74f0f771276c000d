"""Topic windows: append-only, within their limit, nothing left out without saying so."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from topicloom.context.token_count import EstimatingCounter
from topicloom.context.transcript import describe_content
from topicloom.context.windows import (
    ChooseStart,
    PromptWindow,
    WindowStarts,
    choose_start,
    is_cache_point,
)
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.roles.brief import BriefRequest, build_brief_prompt
from topicloom.roles.prompt_caches import find_breakpoints
from topicloom.roles.reader import ReadRequest, TopicWindow, build_reader_prompt
from topicloom.state.language import Language
from topicloom.state.stored_message import MessageRole, StoredMessage, to_stored_message
from topicloom.state.topics import Topic

COUNTER = EstimatingCounter("o200k")
LIMIT = 4_000


def message_at(
    seq: int, text: str = "word", role: MessageRole = "user", day: int = 1
) -> StoredMessage:
    return StoredMessage(seq=seq, role=role, text=text, time=f"2026-03-{day:02}T10:00:00+00:00")


def turns(first: int, last: int, words: int = 5) -> list[StoredMessage]:
    """User messages with odd numbers, replies with even ones."""
    return [
        message_at(n, f"word{n} " * words, "user" if n % 2 else "assistant")
        for n in range(first, last + 1)
    ]


def anew() -> ChooseStart:
    """Where the conversation begins in a window that nothing is remembered of."""
    return partial(WindowStarts(), ("s", "t1"))


def reader_prompt(
    stored: list[StoredMessage],
    tail: list[StoredMessage],
    language: Language,
    limit: int,
    begin: ChooseStart,
) -> list[BaseMessage]:
    shown = TopicWindow(Topic(id="t1", name="Oak"), stored)
    request = ReadRequest("s", [shown], tail, "", language)
    return build_reader_prompt(request, PromptWindow(COUNTER, limit), begin)


def brief_prompt(
    stored: list[StoredMessage], name: str, brief: str, language: Language, limit: int
) -> list[BaseMessage]:
    request = BriefRequest("s", Topic(id="t1", name=name, brief=brief), stored, language)
    return build_brief_prompt(request, PromptWindow(COUNTER, limit))


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(m.content) for m in messages]


def tokens(messages: list[BaseMessage]) -> int:
    return sum(map(COUNTER.message, messages))


def shown_ids(messages: list[BaseMessage]) -> list[int]:
    return [int(i) for text in texts(messages)[1:] for i in re.findall(r"^\[m(\d+)\]", text, re.M)]


def test_a_topic_window_is_instructions_then_topic_then_tail() -> None:
    topic = [
        message_at(1, "I want a table."),
        message_at(2, "Oak or pine?", "assistant"),
        message_at(5, "Oak.", day=2),
    ]
    tail = [
        message_at(8, "Hello", day=3),
        message_at(9, "Hi", "assistant", day=3),
        message_at(10, "And?"),
    ]
    system, *rest = texts(reader_prompt(topic, tail, "en", LIMIT, anew()))
    prompts = (load_prompt(name, "en") for name in ("reader", "reader_tags"))
    assert system == "\n\n".join(prompts)
    assert rest == [
        "=== Topic t1 ===\n-- 2026-03-01 (Sunday) --\n"
        "[m1] user: I want a table.\n[m2] assistant: Oak or pine?",
        "-- 2026-03-02 (Monday) --\n[m5] user: Oak.",
        "=== The topics above ===\nt1: Oak\n=== The conversation now ===\n"
        "-- 2026-03-03 (Tuesday) --\n[m8] user: Hello",
        "[m9] assistant: Hi",
        "-- 2026-03-01 (Sunday) --\n[m10] user: And?",
    ]


@pytest.mark.parametrize(
    ("language", "name", "sought"),
    [
        ("en", "=== The topics above ===\nt1: Table\n", "=== Looking for ===\nits price\n"),
        ("zh", "=== 以上话题 ===\nt1: Table\n", "=== 要找什么 ===\nits price\n"),
    ],
)
def test_names_and_what_is_looked_for_come_late(language: Language, name: str, sought: str) -> None:
    """So a search costs its own line: all that stands before it is in the cache."""
    shown = TopicWindow(Topic(id="t1", name="Table", brief="Of oak."), turns(1, 4))
    plain = ReadRequest("s", [shown], turns(5, 7), "", language)
    window = PromptWindow(COUNTER, LIMIT)
    usual = build_reader_prompt(plain, window, anew())
    assert texts(usual)[3].startswith(f"{name}{get_wording(language).now}\n")
    looking = build_reader_prompt(replace(plain, sought="its price"), window, anew())
    assert looking[:-1] == usual
    assert texts(looking)[-1] == sought
    assert find_breakpoints(looking) == find_breakpoints(usual)
    label = sought.partition("\n")[0]
    assert label in load_prompt("reader", language)


def test_all_topics_begin_with_the_same_words() -> None:
    one = reader_prompt(turns(1, 4), turns(9, 9), "zh", LIMIT, anew())
    two = reader_prompt(turns(5, 8), turns(9, 9), "zh", LIMIT, anew())
    assert one[0] == two[0]
    assert one[-1] == two[-1]


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "tool"]),
        st.text(max_size=60),
        st.integers(1, 28),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(
    said=RECORDS,
    cut=st.integers(0, 14),
    more=st.integers(0, 14),
    language=st.sampled_from(["en", "zh"]),
)
def test_adding_to_the_tail_only_adds_messages(
    said: list[Any], cut: int, more: int, language: Language
) -> None:
    stored = [message_at(n, text, role, day) for n, (role, text, day) in enumerate(said, 1)]
    topic, tail = stored[:cut], stored[cut:]
    openings = anew()
    before = reader_prompt(topic, tail[:more], language, 100_000, openings)
    after = reader_prompt(topic, tail, language, 100_000, openings)
    assert after[: len(before)] == before


def test_adding_blocks_to_the_topic_keeps_what_stood_before() -> None:
    before = reader_prompt(turns(1, 20), turns(31, 33), "en", 100_000, anew())
    after = reader_prompt(turns(1, 30), turns(31, 33), "en", 100_000, anew())
    assert texts(after)[: 1 + 10] == texts(before)[: 1 + 10]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_huge_message_is_shown_in_part(language: Language) -> None:
    huge = message_at(3, "alpha " + "noise " * 9_000 + "omega")
    messages = reader_prompt([huge], [message_at(4)], language, LIMIT, anew())
    text = texts(messages)[1]
    assert "[m3] user: alpha" in text
    assert text.endswith("omega")
    assert re.search(r"m3\D{1,20}[\d,]{6}|[\d,]{6}\D{1,20}m3", text)
    assert tokens(messages) <= LIMIT


def test_a_huge_block_is_shown_in_part() -> None:
    round_ = [message_at(1), *(message_at(n, "noise " * 400, "tool") for n in range(2, 12))]
    messages = reader_prompt(round_, [message_at(20)], "en", LIMIT, anew())
    assert shown_ids(messages) == [*range(1, 12), 20]
    assert tokens(messages) <= LIMIT


def test_the_oldest_blocks_of_a_large_topic_are_left_out_and_counted() -> None:
    topic = turns(1, 400)
    messages = reader_prompt(topic, turns(401, 401), "en", LIMIT, anew())
    shown = shown_ids(messages)
    assert tokens(messages) <= LIMIT
    assert shown[-1] == 401
    assert shown == list(range(shown[0], 402))
    notice = get_wording("en").missing.format(count=shown[0] - 1)
    assert texts(messages)[1].startswith(f"=== Topic t1 ===\n{notice}")


def sizes_of_parts(messages: list[BaseMessage]) -> tuple[int, int]:
    """Tokens of the topic and of the conversation."""
    shown = enumerate(texts(messages)[1:], start=1)
    begin = next(n for n, text in shown if "=== The conv" in text)
    return tokens(messages[1:begin]), tokens(messages[begin:])


@pytest.mark.slow
def test_a_large_topic_leaves_a_quarter_of_the_room_to_the_conversation() -> None:
    openings = anew()
    topic, longest = turns(1, 400), 0
    for last in range(1_001, 1_201, 2):
        messages = reader_prompt(topic, turns(1_001, last), "en", LIMIT, openings)
        assert tokens(messages) <= LIMIT
        assert {400, last} < set(shown_ids(messages))
        whole, current = sizes_of_parts(messages)
        room = LIMIT - tokens(messages[:1])
        assert 0.6 < whole / room < 0.75
        longest = max(longest, current)
    assert 0.2 < longest / room < 0.4


@pytest.mark.slow
def test_a_small_topic_leaves_it_half() -> None:
    openings = anew()
    longest = 0
    for last in range(1_001, 1_301, 2):
        messages = reader_prompt(turns(1, 4), turns(1_001, last), "en", LIMIT, openings)
        longest = max(longest, sizes_of_parts(messages)[1])
    assert 0.45 < longest / (LIMIT - tokens(messages[:1])) <= 0.5


@pytest.mark.slow
def test_while_a_full_window_grows_its_prefix_seldom_breaks() -> None:
    openings = anew()
    topic = turns(1, 400)
    prompts = [
        reader_prompt(topic, turns(401, last), "en", LIMIT, openings) for last in range(401, 601, 2)
    ]
    broken = sum(b[: len(a)] != a for a, b in pairwise(prompts))
    assert 2 <= broken <= 8


def test_when_a_topic_gains_messages_the_conversation_begins_anew() -> None:
    openings = anew()
    lengths = [
        sizes_of_parts(reader_prompt(turns(1, end), turns(101, last), "en", 20_000, openings))[1]
        for end, last in [(10, 101), (10, 181), (20, 181), (20, 183)]
    ]
    assert lengths[2] < lengths[3] < lengths[1]


def test_when_the_language_changes_the_conversation_begins_anew() -> None:
    openings = anew()
    for last in (101, 161):
        messages = reader_prompt(turns(1, 4), turns(101, last), "en", LIMIT, openings)
    assert 101 in shown_ids(messages)
    messages = reader_prompt(turns(1, 4), turns(101, 161), "zh", LIMIT, openings)
    assert 101 not in shown_ids(messages)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_long_replies_of_the_conversation_are_shown_in_part(language: Language) -> None:
    said = "alpha " + "noise " * 400 + "omega"
    roles: tuple[MessageRole, ...] = ("user", "assistant", "tool")
    tail = [message_at(n, said, role) for n, role in enumerate(roles, 11)]
    topic = [message_at(n, said, role) for n, role in enumerate(roles, 1)]
    messages = reader_prompt(topic, tail, language, 32_000, anew())
    shown, user, *rest = texts(messages)[1:]
    assert said in user
    assert shown.count(said) == 3
    for text in rest:
        assert "alpha" in text
        assert text.endswith("omega")
        assert COUNTER.text(text) < 160


def test_the_end_of_the_topic_is_marked_as_lasting() -> None:
    messages = reader_prompt(turns(1, 6), turns(11, 13), "en", LIMIT, anew())
    assert [is_cache_point(m) for m in messages] == [False, False, False, True, False, False, False]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 3_000), min_size=1, max_size=60),
    cut=st.integers(0, 60),
    limit=st.integers(2_500, 20_000),
)
def test_no_prompt_is_over_its_limit(sizes: list[int], cut: int, limit: int) -> None:
    stored = [
        message_at(n, "字" * size if n % 3 else "word " * size, "user" if n % 2 else "assistant")
        for n, size in enumerate(sizes, 1)
    ]
    messages = reader_prompt(stored[:cut], stored[cut:], "en", limit, anew())
    assert tokens(messages) <= limit
    if stored[cut:]:
        assert shown_ids(messages)[-1] == len(stored)
    assert tokens(brief_prompt(stored, "Oak", "About oak.", "zh", limit)) <= limit


def test_the_brief_prompt_ends_with_the_former_brief() -> None:
    messages = brief_prompt(turns(1, 4), "Oak", "About oak.", "en", LIMIT)
    assert texts(messages)[-1] == "=== The brief so far ===\nOak\nAbout oak."
    nameless = brief_prompt(turns(1, 4), "", "", "en", LIMIT)
    assert texts(nameless)[-1] == "=== The brief so far ===\n(none)\n(none)"
    longer = brief_prompt(turns(1, 8), "Oak", "About oak.", "en", LIMIT)
    assert texts(longer)[:3] == texts(messages)[:3]


def kept(message: BaseMessage) -> StoredMessage:
    return to_stored_message(message, seq=1, time="2026-03-01T10:00:00+00:00")


def test_what_text_cannot_show_stands_in_brackets() -> None:
    call = {"name": "find", "args": {"q": "橡木"}, "id": "c1", "type": "tool_call"}
    told = describe_content(kept(AIMessage("", tool_calls=[call])), "en")
    assert told == '[calls find {"q": "橡木"}]'
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content: list[str | dict[str, Any]] = [{"type": "text", "text": "Look"}, image]
    assert describe_content(kept(HumanMessage(content)), "en") == "Look\n[image: m1]"
    assert describe_content(kept(HumanMessage([*content, image])), "zh") == "Look\n[图片 ×2：m1]"
    odd = {"type": "odd]\n[m7] user: x" * 9}
    assert describe_content(kept(HumanMessage([odd])), "en").count("\n") == 0
    assert describe_content(kept(ToolMessage("42", tool_call_id="c1")), "en") == "42"


class TestWhereTheConversationBegins:
    @given(
        sizes=st.lists(st.integers(1, 900), min_size=1, max_size=300),
        room=st.integers(50, 4_000),
        since=st.none() | st.integers(0, 320),
    )
    def test_it_fits_and_shows_the_newest(
        self, sizes: list[int], room: int, since: int | None
    ) -> None:
        numbers = range(1, len(sizes) + 1)
        cut = choose_start(numbers, sizes, room, since)
        assert 0 <= cut < len(sizes)
        assert sum(sizes[cut:]) <= room or cut == len(sizes) - 1
        if since is not None and since in numbers and sum(sizes[since - 1 :]) <= room:
            assert cut == since - 1

    def test_it_moves_once_in_many_turns(self) -> None:
        openings = partial(WindowStarts(), ("s", "t"), 0)
        begins = [openings(range(1, n + 1), [20] * n, 1_000) for n in range(1, 501)]
        assert begins == sorted(begins)
        assert len(set(begins)) <= 500 // 24 + 2

    def test_beginning_anew_leaves_something_before_a_long_newest_message(self) -> None:
        sizes = [*[100] * 60, 8_500]
        assert choose_start(range(1, 62), sizes, 30_000) == 0
        assert choose_start(range(1, 62), sizes, 12_000) == 60 - 30
        assert choose_start(range(1, 62), sizes, 9_000) == 60 - 5
        assert choose_start(range(1, 62), sizes, 8_000) == 60

    def test_of_a_large_room_a_quarter_is_filled_of_a_small_one_half(self) -> None:
        sizes = [100] * 200
        assert 199 - choose_start(range(1, 201), sizes, 16_000) == 40
        assert 199 - choose_start(range(1, 201), sizes, 3_000) == 10
        assert 199 - choose_start(range(1, 201), sizes, 800) == 4

    def test_topics_have_places_of_their_own(self) -> None:
        openings = WindowStarts(size=1)
        assert openings(("s", "a"), 0, range(1, 101), [20] * 100, 1_000) == 74
        assert openings(("s", "a"), 0, range(1, 103), [20] * 102, 1_000) == 74
        assert openings(("s", "b"), 0, range(1, 11), [20] * 10, 1_000) == 0
        # "b" took its place.
        assert openings(("s", "a"), 0, range(1, 103), [20] * 102, 1_000) == 76

    def test_it_begins_anew_after_what_has_changed(self) -> None:
        openings = WindowStarts()
        assert openings(("s", "a"), 1, range(1, 101), [20] * 100, 1_000) == 74
        assert openings(("s", "a"), 2, range(1, 103), [20] * 102, 1_000) == 76

    def test_gone_back_to_an_older_checkpoint_it_begins_anew(self) -> None:
        openings = partial(WindowStarts(), ("s", "a"), 0)
        assert openings(range(1, 101), [20] * 100, 1_000) == 74
        assert openings(range(1, 91), [20] * 90, 1_000) == 64
        assert openings((), (), 1_000) == 0
