"""The page knows what the server says of problems and changes, to say it in Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from topicloom import InputError, ReplyError, Session, Topic, TopicChange
from topicloom.hosting import TopicTable
from topicloom.memory.values import check_name, get_topic, read_number, read_numbers
from topicloom.state.changes import describe_change, explain_refusal
from topicloom_app.serve.web import describe_error

TEXT = Path(__file__).parents[3].joinpath("ui", "src", "problems.ts").read_text("utf-8")
SAYINGS = [
    (re.compile(form, re.DOTALL), chinese)
    for form, chinese in re.findall(r"^  \[/(.*)/s?, \"(.*)\"\],$", TEXT, re.MULTILINE)
]
TABLE = TopicTable({i: Topic(id=i, name=f"Tea {i}", brief="tea") for i in ("t1", "t2")})
SESSION = Session(id="yue")


def find(text: str) -> str:
    """The Chinese that the page has for a sentence; "" if it has none."""
    return next((chinese for form, chinese in SAYINGS if form.search(text)), "")


def test_each_saying_has_a_place_for_every_part() -> None:
    assert SAYINGS
    assert not [c for form, c in SAYINGS if c.count("{}") != form.groups]


@each_row("status", [None, 400, 401, 404, 429, 500])
def test_a_failed_reply_is_told(status: int | None) -> None:
    error = ReplyError("no reply", reason="(refused)", status=status)
    assert find(describe_error(error).message)


@each_row(
    "ask",
    [
        lambda: check_name(" "),
        lambda: get_topic(TABLE, "t9", SESSION),
        lambda: read_number("m9", SESSION),
        lambda: read_numbers(SESSION.model_copy(update={"count": 9}), "m5-m2"),
    ],
)
def test_a_refused_request_is_told(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError) as refused:
        ask()
    assert find(str(refused.value))


@each_row(
    "change",
    [
        TopicChange(topic="t1", author="ann", name="Tea t2"),
        TopicChange(topic="t1", author="ann", takes=(7,)),
        TopicChange(topic="t1", author="ann", absorbs="t1"),
        TopicChange(topic="t9", author="ann"),
        TopicChange(topic="t1", author="ann", restore=True),
    ],
)
def test_a_refused_change_is_told(change: TopicChange) -> None:
    refusal = explain_refusal(change, TABLE, (), tail=5)
    assert refusal
    assert find(refusal)


@each_row(
    ("fields", "told"),
    [
        ({"absorbs": "t2"}, "把{}合并到{}"),
        ({"absorbs": "t2", "archive": "2026-03"}, "把{}合并到{}，并将其归档"),
        ({"archive": "2026-03"}, "归档{}"),
        ({"author": "review"}, "整理{}"),
        ({"topic": "t3", "name": "Rain", "takes": (4, 5)}, "把 {} 到 {} 拆成新话题{}"),
        ({"topic": "t3", "name": "Rain", "takes": (4,)}, "把 {} 拆成新话题{}"),
        ({"takes": (4, 5)}, "把 {} 到 {} 移到{}"),
        ({"takes": (4,)}, "把 {} 移到{}"),
        ({"name": "Rain"}, "把{}改名为“{}”"),
        ({"marks": {"pinned": True}}, "置顶{}"),
        ({"marks": {"pinned": False}}, "取消置顶{}"),
        ({"restore": True}, "恢复{}"),
        ({}, "修改{}"),
    ],
)
def test_a_change_is_told(fields: dict[str, Any], told: str) -> None:
    change = TopicChange.model_validate({"topic": "t1", "author": "ann"} | fields)
    assert find(describe_change(change, TABLE)) == told
