"""RealMem: one person and an assistant over months, with projects that come and go.

A person is a file: `_metadata` and `dialogues`, which are the sessions in the order in which they
were held. A session has its turns, and the memories that were extracted from it with the turn that
each came from. A question is a turn of the user's (`is_query`); the assistant's turn behind it
names the memories that it used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from topicloom_lab.data_sets.rows import Row, make_row

_BEGIN, _END = 9, 21
"""Hours: only days are known, so a session's turns come an hour apart from nine on, and those
past nine in the evening at that hour."""
_OTHER_TALK = "Enhanced"
"""Where a session of no project has the name of its project."""

Source = tuple[int, int]
"""Places of a session, and of a turn in it, from 0."""


def convert_realmem(person: Mapping[str, Any], name: str) -> Row:
    """The conversation of a person, with the questions whose evidence is known.

    The answer to a question is what the assistant replied, the evidence is where the memories come
    from that it used. Questions are left out that rest on a schedule, which has no turn of its own,
    or on something that was said no earlier.
    """
    name, sessions = _read_name(person, name), person["dialogues"]
    sources = _find_sources(sessions)
    messages = list(_make_messages(person, name))
    questions = []
    for place, number, asked, reply in _find_queries(sessions):
        used = [
            source
            for memory in reply.get("memory_used") or ()
            for source in sources.get((memory["session_uuid"], memory["content"]), [None])
        ]
        evidence = sorted({source for source in used if source and source[0] < place})
        if used and all(source in evidence for source in used):
            questions.append(
                {
                    "id": asked["query_id"],
                    "category": asked["category_name"],
                    "question": asked["content"],
                    "answer": reply["content"],
                    "evidence": [_make_id(*source) for source in evidence],
                    "asked_at": _make_id(place, number),
                }
            )
    return make_row(name, messages, questions)


def label_realmem(person: Mapping[str, Any], name: str) -> Row:
    """The conversation of a person with the project of each message; None for other talk."""
    name = _read_name(person, name)
    threads = [s["session_identifier"].partition(":")[0] for s in person["dialogues"]]
    counts = [len(session["dialogue_turns"]) for session in person["dialogues"]]
    labels = [
        None if thread == _OTHER_TALK else thread
        for thread, count in zip(threads, counts, strict=True)
        for _ in range(count)
    ]
    messages = [
        message | {"thread": label}
        for message, label in zip(_make_messages(person, name), labels, strict=True)
    ]
    return {"id": name, "lang": "en", "messages": messages}


def _read_name(person: Mapping[str, Any], name: str) -> str:
    return str(person["_metadata"].get("person_name") or name)


def _make_messages(person: Mapping[str, Any], name: str) -> Iterator[Row]:
    for place, session in enumerate(person["dialogues"]):
        day = session["current_time"].split()[0]
        for number, turn in enumerate(session["dialogue_turns"]):
            user = turn["speaker"] == "User"
            yield {
                "id": _make_id(place, number),
                "role": "user" if user else "assistant",
                "speaker": name.replace("_", " ") if user else "Assistant",
                "time": f"{day}T{min(_BEGIN + number, _END):02}:00:00",
                "text": turn["content"],
            }


def _make_id(session: int, turn: int) -> str:
    return f"s{session}t{turn}"


def _find_sources(
    sessions: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Source | None]]:
    """Where memories come from, by the id of their session and their text.

    The numbers of turns begin at 1; 0 is the session's beginning, and -1 stands for a schedule.
    """
    sources: dict[tuple[str, str], list[Source | None]] = {}
    for place, session in enumerate(sessions):
        for memory in session["extracted_memory"]:
            turn = int(memory["source_turn"])
            source = (place, max(0, turn - 1)) if turn >= 0 else None
            # One memory is a table; nothing cites it.
            key = session["session_uuid"], str(memory["content"])
            sources.setdefault(key, []).append(source)
    return sources


def _find_queries(
    sessions: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, int, Mapping[str, Any], Mapping[str, Any]]]:
    """The turns that ask, each with its places and the turn behind it."""
    for place, session in enumerate(sessions):
        turns = session["dialogue_turns"]
        for number, (turn, reply) in enumerate(pairwise(turns)):
            if turn.get("is_query"):
                yield place, number, turn, reply
