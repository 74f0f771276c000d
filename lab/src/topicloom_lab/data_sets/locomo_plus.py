"""LoCoMo-Plus: remarks that call for a remark of weeks before, which they share no words with.

It is published as pairs. What lies between the two is a conversation of LoCoMo: the first pair
belongs to the first of these, the second to the second, and so on, round after round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from topicloom_lab.data_sets.rows import Row, make_row
from topicloom_lab.data_sets.two_people import convert_locomo

_TALKS, _PAIRS = "locomo10", "locomo_plus"
PARTS = f"{_TALKS}.json", f"{_PAIRS}.json"
_ASKED_AFTER = timedelta(days=7)
"""Time from the last session to the remark that is asked with."""
_GAP = re.compile(r"(\w+) (?:of )?(week|month|year)")
_DAYS = {"week": 7, "month": 30, "year": 365}
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_VAGUE = {"a": 1, "couple": 2, "few": 3, "several": 3}


def split_locomo_plus(folder: Mapping[str, Any]) -> Iterator[tuple[Any, list[tuple[int, Any]]]]:
    """The conversations of LoCoMo, each with its pairs and their numbers from 0."""
    talks, pairs = folder[_TALKS], list(enumerate(folder[_PAIRS]))
    return ((talk, pairs[place :: len(talks)]) for place, talk in enumerate(talks))


def convert_locomo_plus(stitched: tuple[Any, Sequence[tuple[int, Any]]], name: str) -> Row:
    """A conversation with the first remarks of its pairs; the second ones are asked at its end."""
    talk, pairs = stitched
    row = convert_locomo(talk, name)
    messages = [m | {"time": _read_moment(m["time"])} for m in row["messages"]]
    asked = messages[-1]["time"] + _ASKED_AFTER
    speakers = talk["conversation"]["speaker_a"], talk["conversation"]["speaker_b"]
    for number, pair in pairs:
        said = asked - _read_gap(pair["time_gap"]) + timedelta(minutes=number)
        messages += [
            {
                "id": f"P{number}:{place}",
                "role": "user" if line.startswith("A:") else "assistant",
                "speaker": speakers[not line.startswith("A:")],
                "time": said,
                "text": line[2:].strip(),
            }
            for place, line in enumerate(_read_lines(pair["cue_dialogue"]))
        ]
    questions = [
        {
            "id": f"p{number}",
            "category": pair["relation_type"],
            "question": _read_lines(pair["trigger_query"])[0][2:].strip(),
            "answer": _read_lines(pair["cue_dialogue"])[0][2:].strip(),
            "evidence": [f"P{number}:0"],
        }
        for number, pair in pairs
    ]
    messages.sort(key=lambda message: message["time"])
    messages = [m | {"time": m["time"].isoformat()} for m in messages]
    return make_row(f"plus-{row['id']}", messages, questions)


def _read_moment(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y")


def _read_gap(text: str) -> timedelta:
    """The time that lies between two remarks: "about six weeks later"."""
    number, unit = _GAP.findall(text)[0]
    count = _VAGUE[number] if number in _VAGUE else _NUMBERS.index(number)
    return timedelta(days=count * _DAYS[unit])


def _read_lines(text: str) -> list[str]:
    """What A and B say; some line ends are written as `\\n`."""
    return [line.strip() for line in text.replace("\\n", "\n").splitlines() if line.strip()]
