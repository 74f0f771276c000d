"""Conversations of MemoryBank CN with questions and answers: memorybank_zh.py FOLDER OUT.

The folder has `mb_raw.json` (the two source files of MemoryBank-SiliconFriend, MIT) and
`mb_labels.json` (what answers a question). The short answers are written by hand, beside this
file; questions without one are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_suffix(".jsonl")


def make_conversation(
    person: str, raw: list[Any], labels: dict[str, Any], answers: dict[str, str]
) -> dict[str, Any]:
    """What one person and the assistant said, a minute apart from ten o'clock on each day."""
    bank, asked = raw[0], next(row[person] for row in raw[1] if person in row)
    texts = [
        (day, role, said[key])
        for day, rounds in bank[person]["history"].items()
        for said in rounds
        for role, key in (("user", "query"), ("assistant", "response"))
    ]
    days = [day for day, _, _ in texts]
    messages = [
        {
            "id": str(n),
            "role": role,
            "speaker": person if role == "user" else "AI",
            "time": f"{day}T{10 + (m := n - days.index(day)) // 60}:{m % 60:02}:00+08:00",
            "text": text,
        }
        for n, (day, role, text) in enumerate(texts)
    ]
    questions = [
        {
            "id": n,
            "category": "memorybank",
            "question": asked[int(n)],
            "answer": answer,
            "evidence": [str(place) for place in labels[person][n]],
        }
        for n, answer in answers.items()
    ]
    return {"id": person, "lang": "zh", "messages": messages, "questions": questions}


def main() -> None:
    """Write one conversation a line."""
    folder, out = map(Path, sys.argv[1:])
    raw, labels = (
        json.loads((folder / f"mb_{name}.json").read_text()) for name in ("raw", "labels")
    )
    rows = (json.loads(line) for line in ANSWERS.read_text().splitlines())
    made = [make_conversation(row["person"], raw, labels, row["answers"]) for row in rows]
    out.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made))


if __name__ == "__main__":
    main()
