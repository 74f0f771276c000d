"""LongMemEval: 500 questions, each with a history of dated sessions with an assistant.

The three files have one form: S has some 40 sessions a question, M some 500, and the oracle's
those alone that the answer rests on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from topicloom_lab.data_sets.rows import Row, format_moment, make_row

_MOMENT = "%Y/%m/%d %H:%M"
_WEEKDAY = re.compile(r" \(\w+\)")
_ABSTENTION = "abstention"


def convert_longmemeval(instance: Mapping[str, Any], name: str) -> Row:
    """The history of a question, in the order of its sessions' dates, and the question.

    Its evidence is the turns with `has_answer`. It is asked at its date, which is what "last week"
    counts from. A question that should be refused is of a category of its own and has no evidence:
    what it asks about was never said.
    """
    name = str(instance.get("question_id") or name)
    dates = [_read_moment(date) for date in instance["haystack_dates"]]
    sessions = zip(dates, instance["haystack_sessions"], strict=True)
    held = sorted(enumerate(sessions), key=lambda session: session[1][0])
    messages, evidence = list[Row](), list[str]()
    for place, (date, turns) in held:
        for number, turn in enumerate(turns):
            id = f"s{place}t{number}"
            messages.append({"id": id, "role": turn["role"], "time": date, "text": turn["content"]})
            if turn.get("has_answer"):
                evidence.append(id)
    refused = name.endswith("_abs")
    question = {
        "id": name,
        "category": _ABSTENTION if refused else instance["question_type"],
        "question": instance["question"],
        "answer": instance["answer"],
        "evidence": [] if refused else evidence,
        "asked_at": _read_moment(instance["question_date"]),
    }
    return make_row(name, messages, [question])


def _read_moment(text: str) -> str:
    """A moment such as "2023/05/20 (Sat) 02:21"; weekdays are read in the locale's words."""
    return format_moment(_WEEKDAY.sub("", text), _MOMENT)
