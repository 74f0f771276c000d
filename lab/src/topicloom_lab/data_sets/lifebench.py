"""LifeBench: a year of a person's phone, in Chinese, and questions about it.

A person is a folder: `phone_data/` with a file for each kind of entry, and `QA/QA_clean.json`.
An entry is a message of the user's; a chat with the phone's assistant has messages of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from topicloom_lab.data_sets.rows import Row, make_row

_CHATS, _QUESTIONS = "agent_chat", "QA_clean"

_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "call": lambda x: f"[通话] {x['contactName']} {x['datetime']}至 {x.get('datetime_end') or ''}",
    "photo": lambda x: f"[照片] {x['caption']} {(x.get('location') or {}).get('poi') or ''}",
    "sms": lambda x: f"[短信 {x['message_type']} {x['contactName']}] {x['message_content']}",
    "note": lambda x: f"[笔记] {x['title']}：{x['content']}",
    "push": lambda x: f"[推送 {x['source']}] {x.get('title') or ''}：{x['content']}",
    "calendar": lambda x: f"[日程] {x['title']}：{x['description']} {x['start_time']}",
}
"""The text of an entry by the kind that it is of; of one moment, entries come in this order."""

PARTS = (
    f"QA/{_QUESTIONS}.json",
    f"phone_data/{_CHATS}.json",
    *(f"phone_data/{kind}.json" for kind in _LINES),
)
"""The files of a person that are read."""


def convert_lifebench(person: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> Row:
    """The year of a person, from the contents of the files by their names without ending.

    Some entries stand twice: each is there once. Questions that nothing answers are left out, and
    so is the month in which a question is asked: all are asked after the year.
    """
    said = chain(
        _read_chats(person[_CHATS], name),
        *(_read_entries(kind, person[kind], name) for kind in _LINES),
    )
    messages: dict[str, Row] = {}
    for message in said:
        messages.setdefault(message["id"], message)
    entries: dict[str, list[str]] = {}
    for id in messages:
        entries.setdefault("-".join(id.split("-")[:2]), []).append(id)
    questions = [
        _make_question(f"{name}-{n}", asked, entries)
        for n, asked in enumerate(person[_QUESTIONS])
        if asked.get("evidence")
    ]
    return make_row(name, sorted(messages.values(), key=lambda m: m["time"]), questions, "zh")


def _read_chats(chats: Sequence[Mapping[str, Any]], name: str) -> Iterator[Row]:
    """Only days are known: chats begin at noon, and each of the two speaks once a minute."""
    for chat in chats:
        for minute, turn in enumerate(chat["conversation"].values()):
            for role, second in (("user", 0), ("assistant", 30)):
                if said := turn.get(role):
                    yield {
                        "id": f"{_CHATS}-{chat['phone_id']}-{minute}{role[0]}",
                        "role": role,
                        "speaker": name if role == "user" else role,
                        "time": f"{chat['date']}T12:{minute:02}:{second:02}",
                        "text": said["content"],
                    }


def _read_entries(kind: str, entries: Sequence[Mapping[str, Any]], name: str) -> Iterator[Row]:
    for entry in entries:
        yield {
            "id": f"{kind}-{entry['phone_id']}",
            "role": "user",
            "speaker": name,
            "time": entry["datetime"].replace(" ", "T"),
            "text": _LINES[kind](entry),
        }


def _make_question(id: str, asked: Mapping[str, Any], entries: Mapping[str, list[str]]) -> Row:
    """A question; `entries` are the messages of each entry. All of a chat's are evidence."""
    options = asked.get("options") or ()
    lines = (asked["question"], *(f"{o['option']}. {o['content']}" for o in options))
    return {
        "id": id,
        "category": f"{'choice ' if options else ''}{asked['question_type']}",
        "question": "\n".join(lines),
        "answer": asked["answer"],
        "evidence": [
            message
            for entry in asked["evidence"]
            # Some name the entry by a copy of it.
            for message in entries.get(
                f"{entry['type']}-{entry.get('id', entry.get('phone_id'))}", ()
            )
        ],
    }
