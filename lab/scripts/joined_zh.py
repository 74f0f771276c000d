"""Three long Chinese conversations with 260 questions: joined_zh.py FOLDER OUT.

For `topicloom eval run` and `lab/benchmarks/ranking.py`. The folder has `mb_docs.json` (what 15
people and an assistant said, from MemoryBank-SiliconFriend, MIT), `mb_labels.json` (what answers a
question), `ocnli.json` (OCNLI: statements, and the premises that they follow from), and
`hand_zh.json` and `hand_en2zh.json` (what is asked in other characters than it was said in, and the
same in English). The first conversation joins the talk of all people; the second is the premises
as a user's notes, shuffled by a fixed seed: nothing near by belongs together; the third is such
talk with what will be asked for strewn into it.
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


def strew_asides(
    docs: list[str], chinese: list[tuple[str, list[int]]], english: list[tuple[str, list[int]]]
) -> dict[str, Any]:
    """One conversation of a user and an assistant, in which the user mentions what is asked for."""
    random = Random(1)
    wanted = {place for _, right in chinese for place in right}
    others = [place for place in range(len(docs)) if place not in wanted]
    talk = [(place, ("user", "assistant")[n % 2]) for n, place in enumerate(others)]
    for place in sorted(wanted):
        talk.insert(random.randrange(0, len(talk), 2), (place, "user"))
    ids = {doc: i for i, (doc, _) in enumerate(talk)}
    messages = [
        make_message(i, role, f"2026-03-{1 + i // 20:02}T10:{i % 20:02}:00+08:00", docs[doc])
        for i, (doc, role) in enumerate(talk)
    ]
    questions = [
        make_question(f"{language}:{k}", query, [ids[doc] for doc in right])
        for language, queries in (("zh", chinese), ("en", english))
        for k, (query, right) in enumerate(queries)
    ]
    return {"id": "asides", "lang": "zh", "messages": messages, "questions": questions}


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
    docs, labels, ocnli, chinese, english = (
        json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in ("mb_docs", "mb_labels", "ocnli", "hand_zh", "hand_en2zh")
    )
    made = [
        join_people(docs, labels),
        make_notes(ocnli["docs"], ocnli["queries"]),
        strew_asides(chinese["docs"], chinese["queries"], english["queries"]),
    ]
    out.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in made), "utf-8")


if __name__ == "__main__":
    main()
