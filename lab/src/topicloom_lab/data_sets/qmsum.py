"""QMSum: meetings, and queries about stretches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicloom_lab.data_sets.rows import Row, make_row


def convert_qmsum(meeting: Mapping[str, Any], name: str) -> Row:
    """A meeting with its specific queries: general ones rest on all of it."""
    messages = [
        {"id": str(n), "role": "user", "speaker": t["speaker"], "time": None, "text": t["content"]}
        for n, t in enumerate(meeting["meeting_transcripts"])
    ]
    questions = [
        {
            "id": f"{name}_{number}",
            "category": "meeting",
            "question": q["query"],
            "answer": q["answer"],
            "evidence": [
                str(n)
                for first, last in q["relevant_text_span"]
                for n in range(int(first), int(last) + 1)
            ],
        }
        for number, q in enumerate(meeting["specific_query_list"])
    ]
    return make_row(name, messages, questions)
