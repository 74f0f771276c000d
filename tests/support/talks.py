"""Small made conversations to measure on, and their files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from topicloom_app import Conversation

_SUBJECTS = ("worktop", "marathon", "gout", "piano", "tax", "balcony", "insurance", "bicycle")


def talk(rounds: int = 24, *, id: str = "talk", **more: Any) -> Conversation:
    """A conversation of some rounds about eight subjects in turn, with a question about each.

    What the user says of the n-th round is `u<n>`, and costs 10 more than the number of the round.
    """
    messages = []
    for number in range(1, rounds + 1):
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        said = f"The {subject} of visit {number} came to {number + 10} euros, which I noted down."
        heard = f"Noted for visit {number}: that is what it cost."
        messages += [
            {"id": f"u{number}", "role": "user", "speaker": "Yue", "text": said},
            {"id": f"a{number}", "role": "assistant", "text": heard},
        ]
    questions = [
        {
            "id": f"q{number}",
            "category": "first" if number == 1 else "later",
            "question": f"What did the {_SUBJECTS[number % 8]} of visit {number} come to?",
            "answer": f"{number + 10} euros",
            "evidence": [f"u{number}"],
        }
        for number in range(1, rounds + 1, 5)
    ]
    whole = {"id": id, "messages": messages, "questions": questions, **more}
    return Conversation.model_validate(whole)


def talk_file(path: Path, *talks: Conversation) -> Path:
    """Write conversations as JSON lines."""
    path.write_text("".join(f"{t.model_dump_json()}\n" for t in talks), encoding="utf-8")
    return path


def toml_file(path: Path, values: Mapping[str, object]) -> Path:
    """Write a flat configuration; a value that is a mapping becomes a table."""
    flat = [f"{k} = {_toml(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    for name, table in values.items():
        if isinstance(table, Mapping):
            flat += [f"[{name}]", *(f"{k} = {_toml(v)}" for k, v in table.items())]
    path.write_text("\n".join(flat) + "\n", encoding="utf-8")
    return path


def _toml(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value) if isinstance(value, Path) else value)
