"""Yes and no, as models say it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.errors import UnusableAnswerError
from topicloom.roles.values import parse_verdict

YES = [
    "YES",
    "yes",
    "Yes.",
    "**YES**",
    "`yes`",
    "> yes!",
    "ＹＥＳ",
    "Yes, the request is the next step of the same task.",
    "No doubt about it: YES",
    "Answer: **Yes**",
    'The answer is "yes".',
    "答案：是",
    "**结论**：YES",
    "结论是：属于同一件事",
    "是",
    "是的。",
    "是，部署是写完之后的下一步。",
    "属于同一件事",
    '{"answer": "YES"}',
    "<answer>yes</answer>",
    "```\nYES\n```",
    "YES / NO: YES",
    "<think>At first sight no. NO? It refers to the game.</think>YES",
    "Hm, no.</think>\n\nYES",
    "The new request follows from the game, so: yes",
    "这个请求和上文是同一任务",
    "True",
]
NO = [
    "NO",
    "no",
    "No.",
    "**No**",
    "No, it is about pets.",
    "Answer: NO",
    "The answer is no.",
    "否",
    "否。",
    "不是",
    "不是。这是另一件事。",
    "不属于",
    "无关",
    "答案是：否",
    "输出: NO",
    "是否同一件事：否",
    "YES or NO? NO",
    "<think>yes, yes... no</think>no",
    "It shares words only, so no.",
    "两者不属于同一任务",
    "是一个新任务",
    "False",
    '{"same_task": false}',
]
NEITHER = [
    "",
    "   ",
    "I cannot help with that.",
    "Not sure.",
    "I have no idea",
    "I know nothing",
    "yes and no",
    "Maybe yes, maybe no.",
    "YES / NO",
    "是否属于同一件事？",
    "不确定",
    "{}",
    "好",
    "Yesterday",
    "Nothing",
    "<html><body>502 Bad Gateway</body></html>",
]


@each_row("text", YES)
def test_forms_of_yes_are_read(text: str) -> None:
    assert parse_verdict(text) is True


@each_row("text", NO)
def test_forms_of_no_are_read(text: str) -> None:
    assert parse_verdict(text) is False


@each_row("text", NEITHER)
def test_an_answer_that_is_neither_yes_nor_no_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_verdict(text)


PIECES = st.sampled_from(
    ["YES", "no", "是", "不是", "否", "Answer:", "答案", "<think>", "</think>", "**", " / ", "\n"]
)


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text())).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UnusableAnswerError):
        assert parse_verdict(text) in (True, False)


@each_row("piece", ["yes", "no ", "*", "answer: ", "答案", "是", "<think>", "　"])
def test_a_megabyte_of_anything_is_read_or_refused(piece: str) -> None:
    with suppress(UnusableAnswerError):
        assert parse_verdict(piece * (1_000_000 // len(piece))) in (True, False)
