"""Questions for what was put away: by the day and the name of a topic, as users ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from topicloom.evaluation.conversations import Question
from topicloom.state.records import Record
from topicloom.state.session import Language, Session
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

BY_DATE = "archived, by date"
"""Category of these questions."""


def questions_by_date(store: SessionStore, session: Session) -> list[Question]:
    """One question for each archived topic, for what was said in it on its newest day.

    The evidence is all that was said in it on that day, which may be more than fits a budget.
    """
    found = []
    for topic in store.roster(session).archived():
        records = store.topic_records(topic)
        said = [r for r in records if r.day == records[-1].day]
        if (day := _date(said)) is not None:
            found.append(_question(topic, day, said, session.language))
    return found


def _question(topic: Topic, day: date, said: Sequence[Record], language: Language) -> Question:
    text = f"What did we talk about on {day.day} {day:%B} {day.year}: {topic.name}?"
    if language == "zh":
        text = f"{day.year}年{day.month}月{day.day}日我们聊了什么：{topic.name}？"
    evidence = tuple(r.source for r in said if r.source)
    return Question(id=f"archived:{topic.id}", category=BY_DATE, question=text, evidence=evidence)


def _date(said: Sequence[Record]) -> date | None:
    """The day that messages were said on; None if there are none, or nobody knows."""
    try:
        return date.fromisoformat(said[0].day)
    except (IndexError, ValueError):
        return None
