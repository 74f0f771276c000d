"""What converters have in common: a row of ours, and moments as ISO 8601."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

Row = dict[str, Any]
"""A conversation of ours as JSON: see `topicloom_app.recordings.conversations.Conversation`."""


def make_row(name: str, messages: list[Row], questions: Sequence[Row], lang: str = "en") -> Row:
    """A conversation of ours; of evidence, only messages that it has are kept, each once."""
    known = {message["id"] for message in messages}
    kept = [
        q | {"evidence": [i for i in dict.fromkeys(q["evidence"]) if i in known]} for q in questions
    ]
    return {"id": name, "lang": lang, "messages": messages, "questions": kept}


def format_moment(time: str, form: str) -> str:
    """A moment in ISO 8601, from a text in a form of `strptime`; raises `ValueError`."""
    return datetime.strptime(time, form).isoformat()
