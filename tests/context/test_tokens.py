"""Counting tokens: prices by hand, published counts, properties, and the corrections."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from tables import each_row

from topicloom.context.token_count import (
    IMAGE_TOKENS,
    LOW_DETAIL_IMAGE_TOKENS,
    MESSAGE_TOKENS,
    NAME_TOKENS,
    TOOL_CALL_TOKENS,
    TOOL_RESULT_TOKENS,
    EncodingName,
    EstimatingCounter,
    TokenCounter,
)
from topicloom.context.tokens import choose_encoding, count_budget_tokens
from topicloom.context.window import MainWindow
from topicloom.nodes.activate_topic import ACTIVATE_TOPIC, ActivateTopic, make_tool
from topicloom.state.calibration import TokenCalibration
from topicloom.state.session import Session

O200K: TokenCounter = EstimatingCounter("o200k")
TEXTS = st.text(st.sampled_from("ab Z19'.,(){}\t\n\r今天はé。…Ж\x00😀") | st.characters())

# OpenAI cookbook, "How to count tokens with tiktoken", section 6: 124 prompt tokens reported
# for gpt-4o and 129 for gpt-4, three of them for the start of the reply.
JARGON: list[BaseMessage] = [
    SystemMessage(
        "You are a helpful, pattern-following assistant that translates corporate jargon "
        "into plain English."
    ),
    SystemMessage("New synergies will help drive top-line growth.", name="example_user"),
    SystemMessage("Things working well together will increase revenue.", name="example_assistant"),
    SystemMessage(
        "Let's circle back when we have more bandwidth to touch base on opportunities for "
        "increased leverage.",
        name="example_user",
    ),
    SystemMessage(
        "Let's talk later when we're less busy about how to do better.", name="example_assistant"
    ),
    HumanMessage(
        "This late pivot means we don't have time to boil the ocean for the client deliverable."
    ),
]

# The same notebook, section 7: 101 tokens for gpt-4o, of which 34 are the messages.
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    },
}


@each_row(
    ("text", "tokens"),
    [
        ("", 0),
        (" ", 1),  # never 0 for something
        ("Paris is lovely.", 4),  # 3 words + 0.5
        ("internationalization", 3),  # 1 + 14 letters beyond six x 0.11 = 2.54
        ("naïveté", 1),  # an accent splits no word: 1.11
        ("we don't say 'tis", 5),  # 4 words, one quote: 4.5
        ("1234567", 5),  # ceil(7 / 3) x 1.5 = 4.5
        ("今天天气很好。", 5),  # 6 x 0.8 + 0.5 = 5.3
        ("こんにちは", 4),
        ('{"a": [1]}', 5),  # {" 0.5, a 1, ": 0.5, [ 0.5, 1 1.5, ]} 0.5 = 4.5
        ("def f(x):\n    return x + 1\n", 11),  # 5 + 1.5 + 2 x 1 + 0.8 + 1.5 = 10.8
        ("用 Python 3.11 写 hello()", 8),  # 1.6 + 2 + 3 + 1 = 7.6
        ("a\r\n\r\n\r\nb", 3),  # one run of newlines
        ("Привет", 3),  # 6 x 0.5
        ("😀😀😀", 2),
    ],
)
def test_texts_of_each_script_cost_what_o200k_counts(text: str, tokens: int) -> None:
    assert O200K.text(text) == tokens


@each_row(("encoding", "tokens"), [("o200k", 5), ("cl100k", 8), ("deepseek", 4), ("claude", 7)])
def test_encodings_differ_in_chinese_only(encoding: EncodingName, tokens: int) -> None:
    counter = EstimatingCounter(encoding)
    assert counter.text("今天天气很好。") == tokens
    assert counter.text("Paris is lovely.") == 4


def test_hundred_repetitions_sum_exactly() -> None:
    assert O200K.text("letters, " * 100) == 161  # 100 x (1.11 + 0.5), no float residue


@pytest.mark.parametrize(("encoding", "reported"), [("o200k", 124), ("cl100k", 129)])
def test_published_count_of_messages(encoding: EncodingName, reported: int) -> None:
    counter = EstimatingCounter(encoding)
    estimated = 3 + sum(counter.message(message) for message in JARGON)
    assert estimated == pytest.approx(reported, rel=0.04)


def test_published_count_of_a_tool() -> None:
    assert 67 <= O200K.tools([WEATHER]) <= 67 * 1.2


@given(TEXTS, TEXTS)
def test_longer_is_not_less(one: str, other: str) -> None:
    both = O200K.text(one + other)
    assert max(O200K.text(one), O200K.text(other)) <= both + 1  # "don'" is 1.5, "don't" is 1
    assert both <= O200K.text(one) + O200K.text(other) + 2


@given(TEXTS, st.sampled_from(get_args(EncodingName)))
def test_zero_only_for_empty(text: str, encoding: EncodingName) -> None:
    assert (EstimatingCounter(encoding).text(text) > 0) == bool(text)


def test_a_megabyte_is_counted_line_by_line() -> None:
    line = "word of many, 还有中文。\n"
    assert O200K.text(line * 40_000) == pytest.approx(40_000 * O200K.text(line), rel=0.05)


def test_message_frame_name_and_blocks() -> None:
    assert O200K.message(HumanMessage("")) == MESSAGE_TOKENS
    assert O200K.message(HumanMessage("hi", name="Ann")) == MESSAGE_TOKENS + 1 + NAME_TOKENS + 1
    blocks = HumanMessage(["hi", {"type": "text", "text": "there"}])
    assert O200K.message(blocks) == MESSAGE_TOKENS + 2


@each_row(
    ("block", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9_000}}, 765),
        ({"type": "image_url", "image_url": {"url": "u", "detail": "low"}}, 85),
        ({"type": "image", "base64": "A" * 9_000, "mime_type": "image/png"}, IMAGE_TOKENS),
        ({"type": "input_image", "image_url": "u", "detail": "low"}, LOW_DETAIL_IMAGE_TOKENS),
        ({"type": "audio", "base64": "A" * 9_000, "mime_type": "audio/wav"}, IMAGE_TOKENS),
        ({"type": "reasoning", "reasoning": "so it is"}, 3),
        ({"type": "thinking", "thinking": "so it is", "signature": "A" * 900}, 3),
        ({"type": "tool_use", "id": "1", "name": "f", "input": {}}, 0),
        ({"type": "text", "text": ""}, 0),
        ({"type": "odd", "value": 1}, O200K.text('{"type": "odd", "value": 1}')),
    ],
)
def test_each_kind_of_block_is_counted(block: dict[str, Any], tokens: int) -> None:
    assert O200K.message(HumanMessage([block])) == MESSAGE_TOKENS + tokens


def test_tool_calls_and_results() -> None:
    call = {"name": "weather", "args": {"city": "北京"}, "id": "call_1", "type": "tool_call"}
    expected = O200K.text("weather") + O200K.text('{"city": "北京"}') + TOOL_CALL_TOKENS
    assert O200K.message(AIMessage("", tool_calls=[call])) == MESSAGE_TOKENS + expected
    broken = {"name": "weather", "args": '{"city": "北京"}', "id": "1", "error": None}
    message = AIMessage("", invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}])
    assert O200K.message(message) == MESSAGE_TOKENS + expected
    result = ToolMessage("sunny", tool_call_id="call_1")
    assert O200K.message(result) == MESSAGE_TOKENS + TOOL_RESULT_TOKENS + 1


def test_tools_of_every_kind() -> None:
    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return city

    def plain(city: str) -> str:
        """Tell the weather."""
        return city

    assert O200K.tools([]) == 0
    assert O200K.tools([weather, plain]) == O200K.tools([weather]) + O200K.tools([plain])
    assert O200K.tools([{"type": "web_search_preview"}]) > 0


@each_row(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k"),
        ("gpt-4.1-mini", "o200k"),
        ("gpt-5.2", "o200k"),
        ("o3-mini", "o200k"),
        ("openai:gpt-4", "cl100k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-35-turbo-16k", "cl100k"),
        ("ft:gpt-3.5-turbo:org::id", "cl100k"),
        ("DeepSeek-V3", "deepseek"),
        ("us.anthropic.claude-3-5-sonnet", "claude"),
        ("qwen3-32b", "o200k"),
        ("", "o200k"),
    ],
)
def test_encoding_of_a_model(model: str, encoding: EncodingName) -> None:
    assert choose_encoding(model) == encoding


def test_correction_follows_reports() -> None:
    window = MainWindow(
        32_000, 2_560, O200K, "ledger", (), make_tool(ACTIVATE_TOPIC, ActivateTopic)
    )
    assert window.calibrate(101, Session(id="s")) == 116  # with the margin of 15 %
    first = TokenCalibration().observe(100, 110)
    assert first == TokenCalibration(ratio=1.1, observations=1)
    session = Session(id="s", correction=first)
    assert window.calibrate(100, session) == 126
    assert window.calibrate(101, session) == 128
    assert window.uncalibrate(1_265, session) == 1_000
    second = first.observe(100, 130)
    assert second.ratio == pytest.approx(1.2)
    fifth = TokenCalibration(1.2, 4).observe(100, 100)
    assert fifth.ratio == pytest.approx(1.2 - 0.3 * 0.2)


@given(st.lists(st.tuples(st.integers(-5, 10**7), st.integers(-5, 10**7))))
def test_correction_stays_within_bounds(reports: list[tuple[int, int]]) -> None:
    correction = TokenCalibration()
    for estimated, reported in reports:
        correction = correction.observe(estimated, reported)
    assert 0.5 <= correction.ratio <= 2.0
    assert correction.observations == sum(min(report) > 0 for report in reports)
    assert TokenCalibration(**json.loads(json.dumps(asdict(correction)))) == correction


@each_row(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("今天", 2),
        ("今天 hello!", 4),
        ("。ア한Ａ", 4),
    ],
)
def test_budget_tokens_of_texts(text: str, tokens: int) -> None:
    assert count_budget_tokens(text) == tokens
