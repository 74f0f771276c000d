"""The prefix meter: what repeats, within which window, and how much it remembers."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from topicloom.context.prefix import PrefixMeter


def count(message: BaseMessage) -> int:
    """Ten tokens a message, for shares that can be told by heart."""
    return 10


def said(*parts: str) -> list[BaseMessage]:
    return [SystemMessage("be kind"), *map(HumanMessage, parts)]


def test_a_first_prompt_repeats_nothing() -> None:
    meter = PrefixMeter()
    assert meter.measure("s", "main", said("a"), count) == 0
    assert meter.measure("s", "main", [], count) == 0


def test_a_longer_prompt_repeats_the_shorter_one() -> None:
    meter = PrefixMeter()
    meter.measure("s", "main", said("a", "b"), count)
    assert meter.measure("s", "main", said("a", "b", "c"), count) == 3 / 4
    assert meter.measure("s", "main", said("a", "b", "c"), count) == 1
    assert meter.measure("s", "main", said("a", "x", "c"), count) == 2 / 4


def test_all_remembered_prompts_count_not_just_the_last() -> None:
    meter = PrefixMeter(prompts=2)
    meter.measure("s", "main", said("a", "b"), count)
    meter.measure("s", "main", said("x"), count)
    assert meter.measure("s", "main", said("a", "b"), count) == 1
    meter.measure("s", "main", said("y"), count)
    meter.measure("s", "main", said("z"), count)
    assert meter.measure("s", "main", said("a", "b"), count) == 1 / 3


def test_sessions_and_windows_are_apart() -> None:
    meter = PrefixMeter()
    meter.measure("s", "reader:t1", said("a"), count)
    assert meter.measure("s", "reader:t2", said("a"), count) == 0
    assert meter.measure("other", "reader:t1", said("a"), count) == 0


def test_what_a_provider_does_not_see_makes_no_difference() -> None:
    meter = PrefixMeter()
    call = {"name": "find", "args": {"q": "oak"}, "id": "c1", "type": "tool_call"}
    meter.measure("s", "w", [HumanMessage("a", id="1"), AIMessage("", tool_calls=[call])], count)
    same = [HumanMessage("a", id="2"), AIMessage("", tool_calls=[call], id="x")]
    assert meter.measure("s", "w", same, count) == 1
    other = [HumanMessage("a"), AIMessage("", tool_calls=[{**call, "args": {}}])]
    assert meter.measure("s", "w", other, count) == 1 / 2
    assert meter.measure("s", "w", [AIMessage("a"), ToolMessage("a", tool_call_id="1")], count) == 0


def test_tokens_of_repeated_messages_are_not_counted_again() -> None:
    counted: list[str] = []

    def counting(message: BaseMessage) -> int:
        counted.append(str(message.content))
        return len(str(message.content))

    meter = PrefixMeter()
    meter.measure("s", "w", [HumanMessage("aa"), HumanMessage("bbb")], counting)
    share = meter.measure("s", "w", [HumanMessage("aa"), HumanMessage("cccccc")], counting)
    assert share == 2 / 8
    assert counted == ["aa", "bbb", "cccccc"]


def test_the_longest_unused_window_is_forgotten() -> None:
    meter = PrefixMeter(capacity=6)
    for window in ("a", "b"):
        meter.measure("s", window, said("1", "2"), count)
    assert meter.measure("s", "a", said("1", "2"), count) == 1
    assert meter.measure("s", "b", said("1", "2"), count) == 0


def test_a_window_larger_than_the_capacity_is_still_remembered() -> None:
    meter = PrefixMeter(prompts=1, capacity=2)
    meter.measure("s", "a", said("1", "2", "3"), count)
    assert meter.measure("s", "a", said("1", "2", "3"), count) == 1


PROMPTS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=8)


@given(prompts=PROMPTS)
def test_the_share_is_that_of_the_longest_common_prefix(prompts: list[list[str]]) -> None:
    meter = PrefixMeter(prompts=3)
    for index, parts in enumerate(prompts):
        longest = max((_common(parts, p) for p in prompts[max(0, index - 3) : index]), default=0)
        expected = longest / len(parts) if parts else 0
        assert meter.measure("s", "w", list(map(HumanMessage, parts)), count) == expected


def test_no_message_is_kept() -> None:
    meter, message = PrefixMeter(), HumanMessage("a")
    kept = ref(message)
    assert [meter.measure("s", "w", [message], count) for _ in range(2)] == [0, 1]
    del message
    gc.collect()
    assert kept() is None
    assert meter.measure("s", "w", [HumanMessage("a")], count) == 1


def test_many_threads_may_ask_at_once() -> None:
    meter = PrefixMeter(capacity=50)
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(meter.measure, "s", f"w{n % 7}", said(*"abc"[: n % 4]), count)
            for n in range(400)
        ]
    assert all(0 <= future.result() <= 1 for future in asked)


def _common(one: list[str], two: list[str]) -> int:
    length = 0
    while length < min(len(one), len(two)) and one[length] == two[length]:
        length += 1
    return length
