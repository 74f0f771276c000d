"""LoCoMo and REALTALK: long chats of two people, in one form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from topicloom_lab.data_sets.rows import Row, format_moment, make_row


def convert_locomo(sample: Mapping[str, Any], name: str) -> Row:
    """A conversation of LoCoMo; an image is its caption."""
    said = sample["conversation"]
    first = said["speaker_a"]
    messages = [
        _make_message(turn, first, said[f"session_{n}_date_time"], turn["text"], "shares an image")
        for n in _sessions(said)
        for turn in said[f"session_{n}"]
    ]
    name = sample.get("sample_id") or name
    return make_row(name, messages, _make_questions(name, sample["qa"]))


def convert_realtalk(sample: Mapping[str, Any], name: str) -> Row:
    """A conversation of REALTALK; an image is its caption."""
    first = sample["name"]["speaker_1"]
    messages = [
        _make_message(
            turn,
            first,
            format_moment(turn["date_time"], "%d.%m.%Y, %H:%M:%S"),
            turn["clean_text"],
            "image",
        )
        for n in _sessions(sample)
        for turn in sample[f"session_{n}"]
    ]
    return make_row(name, messages, _make_questions(name, sample["qa"]))


def _sessions(said: Mapping[str, Any]) -> Iterator[int]:
    """Numbers of the sessions that were held."""
    for number in count(1):
        if f"session_{number}" not in said:
            return
        yield number


def _make_message(turn: Mapping[str, Any], first: str, time: str, text: str, image: str) -> Row:
    caption = turn.get("blip_caption")
    return {
        "id": turn["dia_id"],
        "role": "user" if turn["speaker"] == first else "assistant",
        "speaker": turn["speaker"],
        "time": time,
        "text": f"{text} [{image}: {caption}]" if caption else text,
    }


def _make_questions(name: str, asked: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [
        {
            "id": f"{name}_{n}",
            "category": str(q["category"]),
            "question": q["question"],
            "answer": q.get("answer", q.get("adversarial_answer", "")),
            "evidence": [i for text in q.get("evidence", ()) for i in _list_ids(text)],
        }
        for n, q in enumerate(asked)
    ]


def _list_ids(text: str) -> list[str]:
    """Ids of messages; some stand two in one text."""
    return re.findall(r"D\d+:\d+", text)
