"""What providers' caches would have served: the rules, and what must hold of any of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tables import each_row

from topicloom_lab.caching.measure import (
    RULES,
    AnthropicRule,
    BreakpointRule,
    CacheRule,
    DeepSeekRule,
    OpenAIRule,
    Prices,
    PromptPart,
    SentPrompt,
    Served,
    measure,
    parts_of,
    prefixes,
    text_sent,
)


def part(name: str, tokens: int = 1_000) -> PromptPart:
    return PromptPart(name, tokens)


def sent(
    names: str, *, at: float = 0.0, marks: Sequence[int] = (), reply: str = "", tokens: int = 1_000
) -> SentPrompt:
    """A prompt with a part of so many tokens for each letter."""
    answer = part(reply, tokens) if reply else None
    parts = tuple(part(n, tokens) for n in names)
    return SentPrompt("main", at, parts, tuple(marks), answer)


def reads(rule: CacheRule, *prompts: SentPrompt) -> list[int]:
    return [rule.serve(p).read for p in prompts]


class TestOpenAIBefore56:
    def test_the_common_prefix_in_steps_of_128(self) -> None:
        assert reads(OpenAIRule(), sent("ab"), sent("abc"), sent("abd"), sent("axd")) == [
            0,
            1_024 + 7 * 128,
            1_024 + 7 * 128,
            0,  # 1,000 tokens are too few
        ]

    def test_the_beginning_of_a_part_counts(self) -> None:
        rule = OpenAIRule()
        one = SentPrompt("main", 0, (PromptPart("x" * 4_000 + "one", 2_000),))
        two = SentPrompt("main", 1, (PromptPart("x" * 4_000 + "two", 2_000),))
        assert reads(rule, one, two) == [0, 1_024 + 7 * 128]

    def test_any_earlier_prompt_counts_not_just_the_last(self) -> None:
        assert reads(OpenAIRule(), sent("abc"), sent("xyz"), sent("abcd"))[-1] == 1_024 + 15 * 128

    def test_what_is_not_used_is_forgotten(self) -> None:
        rule = OpenAIRule(seconds=600)
        assert reads(rule, sent("abc"), sent("abc", at=600), sent("abc", at=1_300)) == [
            0,
            1_024 + 15 * 128,
            0,
        ]


class TestOpenAIFrom56:
    def test_only_whole_prompts_are_found_again(self) -> None:
        assert reads(BreakpointRule(), sent("abc"), sent("abcde"), sent("abcx"), sent("abx")) == [
            0,
            3_000,
            3_000,
            0,
        ]

    def test_breakpoints_of_ones_own(self) -> None:
        rule = BreakpointRule(explicit=True)
        assert reads(rule, sent("abc", marks=[2]), sent("abx", marks=[2])) == [0, 2_000]
        assert reads(BreakpointRule(), sent("abc", marks=[2]), sent("abx", marks=[2])) == [0, 0]

    def test_writes_are_paid_for(self) -> None:
        rule = BreakpointRule()
        first, second = rule.serve(sent("abc")), rule.serve(sent("abcd"))
        assert (first.written, second.written) == (3_000, 1_000)
        assert rule.prices.cost(second) == pytest.approx((300 + 1_250) / 1e6)

    def test_under_1024_tokens_nothing_is_cached(self) -> None:
        rule = BreakpointRule()
        short = sent("ab", tokens=500)
        assert [rule.serve(short), rule.serve(short)] == [Served(1_000, 0, 0, 1)] * 2


class TestAnthropic:
    def test_without_a_mark_nothing_is_cached(self) -> None:
        assert reads(AnthropicRule(), sent("abc"), sent("abc")) == [0, 0]

    def test_a_mark_finds_what_was_written_a_few_blocks_before(self) -> None:
        rule = AnthropicRule()
        assert reads(rule, sent("abc", marks=[3]), sent("abcde", marks=[5])) == [0, 3_000]

    @pytest.mark.parametrize(("more", "found"), [(19, 2_000), (20, 0)])
    def test_it_looks_back_twenty_blocks(self, more: int, found: int) -> None:
        rule = AnthropicRule()
        longer = "ab" + "".join(chr(200 + n) for n in range(more))
        assert reads(rule, sent("ab", marks=[2]), sent(longer, marks=[2 + more]))[1] == found

    def test_what_stands_before_a_change_needs_a_mark_of_its_own(self) -> None:
        assert reads(AnthropicRule(), sent("abc", marks=[3]), sent("abx", marks=[3])) == [0, 0]
        rule = AnthropicRule()
        assert reads(rule, sent("abc", marks=[2, 3]), sent("abx", marks=[2, 3])) == [0, 2_000]

    def test_a_model_may_want_more_tokens(self) -> None:
        rule = AnthropicRule(least=4_096)
        assert reads(rule, sent("abc", marks=[3]), sent("abc", marks=[3])) == [0, 0]

    def test_a_read_keeps_it_warm(self) -> None:
        rule = AnthropicRule()
        times = [sent("abc", at=at, marks=[3]) for at in (0, 200, 400, 701)]
        assert reads(rule, *times) == [0, 3_000, 3_000, 0]


class TestDeepSeek:
    def test_a_prompt_with_its_answer_is_a_unit(self) -> None:
        rule = DeepSeekRule()
        assert reads(rule, sent("ab", reply="c"), sent("abcd")) == [0, 3_000]

    def test_what_two_prompts_have_in_common_serves_the_third(self) -> None:
        rule = DeepSeekRule()
        assert reads(rule, sent("abx"), sent("aby"), sent("abz")) == [0, 0, 2_000]


LETTERS = st.text("abc", min_size=1, max_size=8)


@st.composite
def conversations(draw: st.DrawFn) -> list[SentPrompt]:
    """Prompts that now and then go on from an earlier one."""
    prompts: list[SentPrompt] = []
    for at in range(draw(st.integers(1, 8))):
        before = draw(st.sampled_from(["", *["".join(p.text for p in s.parts) for s in prompts]]))
        names = before + draw(LETTERS)
        marks = sorted(draw(st.sets(st.integers(1, len(names)), max_size=4)))
        prompts.append(sent(names, at=60.0 * at, marks=marks, reply=draw(LETTERS)))
    return prompts


@pytest.mark.parametrize("name", RULES)
@given(prompts=conversations())
def test_no_cache_gives_more_than_was_sent_before(name: str, prompts: list[SentPrompt]) -> None:
    rule = RULES[name]()
    seen = set[bytes]()
    for prompt in prompts:
        served, digests = rule.serve(prompt), prefixes(prompt.parts)
        repeated = sum(p.tokens for p, d in zip(prompt.parts, digests, strict=True) if d in seen)
        answer = [prompt.reply] if prompt.reply else []
        seen |= {*prefixes([*prompt.parts, *answer])}
        assert 0 <= served.read <= repeated
        assert 0 <= served.written <= served.tokens - served.read
        assert served.tokens == prompt.tokens


@each_row("name", RULES)
def test_prompts_that_only_grow_are_served_but_for_what_is_new(name: str) -> None:
    letters = "".join(chr(200 + n) for n in range(100))
    grown = [
        sent(letters[: 2 * n], at=60.0 * n, marks=[1, 2 * n], reply=letters[2 * n])
        for n in range(1, 50)
    ]
    found = measure(grown, RULES[name](), lambda p: p.window)["main"]
    assert found.share > 0.94
    assert RULES[name]().prices.relative(found) < 0.2


def test_prompts_are_taken_in_the_order_of_their_times() -> None:
    prompts = [sent("abcd", at=5, tokens=2_000), sent("abc", at=1, tokens=2_000)]
    assert measure(prompts, BreakpointRule(), lambda p: "all")["all"].read == 6_000


def test_costs_follow_the_prices_of_a_cache() -> None:
    prices = Prices(read=0.1, write=1.25, million=2.0)
    served = Served(tokens=1_000_000, read=600_000, written=200_000, prompts=3)
    assert prices.cost(served) == pytest.approx(2 * (0.2 + 0.06 + 0.25))
    assert prices.relative(served) == pytest.approx(0.51)
    assert prices.relative(Served()) == 1.0
    assert Served().share == 0.0


def test_parts_are_all_that_is_sent_of_a_message() -> None:
    call = {"name": "look", "args": {"for": "oak"}, "id": "1", "type": "tool_call"}
    messages = [
        HumanMessage("hi"),
        HumanMessage("hi", name="Ann"),
        AIMessage("hi"),
        AIMessage("hi", tool_calls=[call]),
        HumanMessage([{"type": "text", "text": "hi"}]),
        ToolMessage("hi", tool_call_id="1"),
    ]
    assert len({text_sent(m) for m in messages}) == len(messages)
    assert text_sent(HumanMessage("hi", id="a")) == text_sent(HumanMessage("hi", id="b"))
    assert [p.tokens for p in parts_of(messages, lambda m: len(m.type))] == [5, 5, 2, 2, 5, 4]
