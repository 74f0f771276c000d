"""Public data sets of long conversations: where they are, their licences, and how they become ours.

Ours is a conversation a line, with questions and the messages that their answers rest on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from topicloom.errors import NotAConversationError

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that others publish."""

    what: str
    home: str
    """Where it is described."""
    licence: str
    files: tuple[str, ...] = ()
    """Addresses of the files that are converted; none where they are not."""
    convert: Callable[[Any, str], Row] | None = None
    """A conversation of ours from one of theirs and the name of its file."""


def convert_file(name: str, text: str, stem: str) -> Iterator[Row]:
    """The conversations of a public file, from its text and its name without ending.

    Raises:
        NotAConversationError: It is not of that data set's form.
    """
    convert = DATA_SETS[name].convert
    if convert is None:
        raise NotAConversationError(f"{name} is not converted: {DATA_SETS[name].home} has its form")
    try:
        if not (found := _read(text)):
            raise ValueError("it is empty")
        for number, value in enumerate(found, start=1):
            yield convert(value, stem if len(found) == 1 else f"{stem}-{number}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAConversationError(
            f"this is no file of {name} ({type(error).__name__}: {error}): {DATA_SETS[name].home}"
            " has those that are"
        ) from error


def _read(text: str) -> list[Any]:
    """The values of a file of JSON, or of one with a value a line."""
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return value if isinstance(value, list) else [value]


def _convert_locomo(sample: Mapping[str, Any], name: str) -> Row:
    said = sample["conversation"]
    first = said["speaker_a"]
    messages = [
        _make_message(turn, first, said[f"session_{n}_date_time"], turn["text"], "shares an image")
        for n in _sessions(said)
        for turn in said[f"session_{n}"]
    ]
    return _make_row(sample.get("sample_id") or name, messages, sample["qa"])


def _convert_realtalk(sample: Mapping[str, Any], name: str) -> Row:
    first = sample["name"]["speaker_1"]
    messages = [
        _make_message(turn, first, _iso(turn["date_time"]), turn["clean_text"], "image")
        for n in _sessions(sample)
        for turn in sample[f"session_{n}"]
    ]
    return _make_row(name, messages, sample["qa"])


def _convert_qmsum(sample: Mapping[str, Any], name: str) -> Row:
    messages = [
        {"id": str(n), "role": "user", "speaker": t["speaker"], "time": None, "text": t["content"]}
        for n, t in enumerate(sample["meeting_transcripts"])
    ]
    questions = [
        {
            "question": q["query"],
            "answer": q["answer"],
            "category": "meeting",
            "evidence": [
                str(n)
                for first, last in q["relevant_text_span"]
                for n in range(int(first), int(last) + 1)
            ],
        }
        for q in sample["specific_query_list"]
    ]
    return _make_row(name, messages, questions)


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


def _make_row(name: str, messages: list[Row], asked: Sequence[Mapping[str, Any]]) -> Row:
    known = {message["id"] for message in messages}
    questions = [
        {
            "id": f"{name}_{n}",
            "category": str(q["category"]),
            "question": q["question"],
            "answer": q.get("answer", q.get("adversarial_answer", "")),
            "evidence": [i for i in _list_ids(q.get("evidence", ())) if i in known],
        }
        for n, q in enumerate(asked)
    ]
    return {"id": name, "lang": "en", "messages": messages, "questions": questions}


def _list_ids(evidence: Any) -> list[str]:
    """Ids of messages; some stand two in one text."""
    return [i for text in evidence for i in re.findall(r"D\d+:\d+|^\d+$", text)]


def _iso(time: str) -> str:
    return datetime.strptime(time, "%d.%m.%Y, %H:%M:%S").isoformat()


_RAW = "https://raw.githubusercontent.com"
_TALKS = (
    "1_Emi_Elise 2_Kevin_Elise 3_Kevin_Paola 4_Emi_Paola 5_Nicolas_Nebraas 6_Vanessa_Nicolas"
    " 7_Nebraas_Vanessa 8_Akib_Muhhamed 9_Fahim_Akib 10_Fahim_Muhhamed"
).split()

DATA_SETS: Mapping[str, DataSet] = {
    "locomo": DataSet(
        "10 very long chats of two people, made up",
        "https://github.com/snap-research/locomo",
        "CC BY-NC 4.0",
        (f"{_RAW}/snap-research/locomo/main/data/locomo10.json",),
        _convert_locomo,
    ),
    "realtalk": DataSet(
        "10 real chats of two people over three weeks",
        "https://github.com/danny911kr/REALTALK",
        "not stated",
        tuple(f"{_RAW}/danny911kr/REALTALK/main/data/Chat_{talk}.json" for talk in _TALKS),
        _convert_realtalk,
    ),
    "qmsum": DataSet(
        "35 real meetings, the part for validation",
        "https://github.com/Yale-LILY/QMSum",
        "MIT; AMI and ICSI CC BY 4.0",
        (f"{_RAW}/Yale-LILY/QMSum/main/data/ALL/jsonl/val.jsonl",),
        _convert_qmsum,
    ),
    "beam": DataSet(
        "chats with an assistant of 128k tokens and more",
        "https://github.com/mohammadtavakoli78/BEAM",
        "CC BY-SA 4.0 as stated by a derivative",
    ),
    "goodai": DataSet(
        "tasks interleaved in one chat",
        "https://github.com/GoodAI/goodai-ltm-benchmark",
        "MIT",
    ),
}
"""By name."""
