"""Two long Chinese conversations with questions: joined_zh.py FOLDER OUT.

For `lab/benchmarks/ranking.py`. The folder has `mb_docs.json` (what 15 people and an assistant
said, from MemoryBank-SiliconFriend, MIT), `mb_labels.json` (what answers a question) and
`ocnli.json` (OCNLI: statements, and the premises that they follow from). The first conversation
joins the talk of all people; the second is the premises as a user's notes, shuffled by a fixed
seed: nothing near by belongs together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

ASKED = 150
"""Statements of OCNLI that are asked about."""


def join_people(docs: dict[str, Any], labels: dict[str, Any]) -> dict[str, Any]:
    """One conversation of all, 16 messages a day."""
    messages: list[dict[str, str]] = []
    questions, day = [], 0
    for person, said in docs.items():
        begin = len(messages)
        for place, text in enumerate(said["docs"]):
            day += place % 16 == 0
            role = "assistant" if place % 2 else "user"
            time = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T10:{place % 16:02}:00+08:00"
            messages.append(make_message(begin + place, role, time, text))
        for number, evidence in labels.get(person, {}).items():
            asked = said["qs"][int(number)]
            gold = [begin + place for place in evidence]
            questions.append(make_question(f"{person}:{number}", asked, gold))
    return {"id": "mb", "lang": "zh", "messages": messages, "questions": questions}


def make_notes(docs: list[str], queries: list[tuple[str, list[int]]]) -> dict[str, Any]:
    """One conversation of notes, seven a day."""
    random = Random(0)
    order = list(range(len(docs)))
    random.shuffle(order)
    place = {doc: i for i, doc in enumerate(order)}
    messages = []
    for i, doc in enumerate(order):
        day = f"2026-{1 + i // 180:02}-{1 + i % 180 // 7:02}"
        messages.append(make_message(i, "user", f"{day}T10:00:00+08:00", docs[doc]))
    questions = [
        make_question(str(k), queries[k][0], [place[doc] for doc in queries[k][1]])
        for k in random.sample(range(len(queries)), ASKED)
    ]
    return {"id": "notes", "lang": "zh", "messages": messages, "questions": questions}


def make_message(number: int, role: str, time: str, text: str) -> dict[str, str]:
    """A message as recordings have it."""
    return {"id": str(number), "role": role, "speaker": role, "time": time, "text": text}


def make_question(name: str, question: str, evidence: list[int]) -> dict[str, Any]:
    """A question as recordings have it."""
    gold = list(map(str, evidence))
    return {"id": name, "category": "zh", "question": question, "answer": "", "evidence": gold}


def main() -> None:
    """Write one conversation a line."""
    folder, out = map(Path, sys.argv[1:])
    docs, labels, ocnli = (
        json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in ("mb_docs", "mb_labels", "ocnli")
    )
    made = [join_people(docs, labels), make_notes(ocnli["docs"], ocnli["queries"])]
    out.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made), "utf-8")


if __name__ == "__main__":
    main()
