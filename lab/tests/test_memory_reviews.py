"""The memory evaluation with daily reviews: what is archived, asked for by date, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from topicloom import ReviewReport, Settings, StorageError
from topicloom_app import Conversation, RecordedMessage
from topicloom_app.recordings.conversations import Question
from topicloom_lab.memory import BY_DATE, MemoryEvaluation, MemoryRow, Reviews
from topicloom_lab.turn_costs import FedTurn

pytestmark = pytest.mark.slow

_ASKED = "什么是明前茶？它和雨前茶有什么不同？"
_TOLD = (
    "厨房的橡木台面要一百四十欧元。",
    "今天沿着湖跑了十公里，膝盖有点疼。",
    "孩子的小提琴课改到星期四了。",
    "医生说我对花生过敏，要小心。",
)


def talk() -> Conversation:
    """Questions on tea, over on the first day, then a month of other things; in Chinese."""
    messages: list[RecordedMessage] = []

    def say(text: str, reply: str, day: int) -> None:
        number = len(messages)
        time = f"2026-03-{day:02}T09:00:00+08:00"
        messages.extend(
            (
                RecordedMessage(id=f"a{number}", role="user", text=text, time=time),
                RecordedMessage(id=f"a{number + 1}", role="assistant", text=reply),
            )
        )

    for asked in (_ASKED, "雨前茶用多少度的水泡？", "明前茶和雨前茶哪种更贵？"):
        say(asked, "明前茶是清明前采的茶，更嫩。" * 10, 1)
    for day in range(2, 31):
        say(f"{_TOLD[day % 4]}第{day}天。" * 12, "好的，记住了。", day)
    question = Question(id="q1", question="台面多少钱？", evidence=("a10",))
    return Conversation(id="茶", lang="zh", messages=tuple(messages), questions=(question,))


def run(folder: Path, reviews: Reviews) -> Iterator[MemoryRow | ReviewReport | FedTurn]:
    # Few topics are awake, or the question of the first day would be one of them still.
    settings = Settings.model_validate({"activation": {"floor": 1, "usual": 2, "ceiling": 2}})
    evaluation = MemoryEvaluation(
        budgets=(400,), window=1_500, topic_window=4_000, reviews=reviews, settings=settings
    )
    return evaluation.run(talk(), folder)


def test_what_was_asked_once_is_archived_and_quoted_for_its_day(tmp_path: Path) -> None:
    events = list(run(tmp_path, "daily"))
    reports = [e for e in events if isinstance(e, ReviewReport)]
    assert [r.now[:10] for r in reports] == [f"2026-03-{day:02}" for day in range(2, 31)]
    assert {topic for report in reports for topic in report.archived}
    rows = [e for e in events if isinstance(e, MemoryRow)]
    assert rows[0].question == "q1"
    by_date = [row for row in rows if row.category == BY_DATE]
    assert by_date
    assert all(row.recall > 0 for row in by_date)
    assert sum(e.messages for e in events if isinstance(e, FedTurn)) == len(talk().messages)


def test_without_reviews_nothing_is(tmp_path: Path) -> None:
    events = list(run(tmp_path, "none"))
    assert not [e for e in events if isinstance(e, ReviewReport)]
    (row,) = [e for e in events if isinstance(e, MemoryRow)]
    assert row.category == ""


def test_a_session_that_was_changed_by_hand_is_told(tmp_path: Path) -> None:
    events = run(tmp_path, "none")
    assert any(isinstance(event, MemoryRow) for event in events)
    (path,) = tmp_path.glob("*/transcript.jsonl")
    text = path.read_text("utf-8")
    path.write_text(text.replace('"source":"a1"', '"source":"b1"'), "utf-8")
    with pytest.raises(StorageError, match="is not what was written"):
        list(events)
