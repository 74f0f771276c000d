"""Shared by the generators: specifications, messages from texts, scores of answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from topicloom import InputError
from topicloom_app.recordings.conversations import RecordedMessage


def options_in(spec: str) -> tuple[str, dict[str, str]]:
    """Name and options of a specification, the values as they are written.

    Raises:
        InputError: If a part of it is no option, or an option comes twice.
    """
    name, _, rest = spec.strip().partition(":")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = (p.strip() for p in part.partition("="))
        if not (option and equals and value):
            raise InputError(
                "{spec!r}: {part!r} is no option; wanted: {name}:option=value,option=value",
                spec=spec,
                part=part,
                name=name,
            )
        if option in options:
            raise InputError("{spec!r}: option {option!r} is given twice", spec=spec, option=option)
        options[option] = value
    return name.strip(), options


_REPLIES = ("Noted.", "All right, I have that.", "Understood.", "Got it, go on.")


def make_chat(texts: Iterable[str]) -> Iterator[RecordedMessage]:
    """User messages `u1`, `u2` ... with these texts, and the replies `a1`, `a2` ... to them."""
    for number, text in enumerate(texts, start=1):
        yield RecordedMessage(id=f"u{number}", role="user", text=text)
        reply = _REPLIES[number % len(_REPLIES)]
        yield RecordedMessage(id=f"a{number}", role="assistant", text=reply)


_NUMBER = re.compile(r"-?\d[\d,]*")
_PARTIAL = 0.75
"""Factor that each unit of error takes off a number's score."""


def score(expected: str, said: str) -> float:
    """Score what was said for an answer, 0 to 1.

    For a number `0.75 ** abs(expected - said)`, of the last number that is said; for anything
    else 1 if it is what stands behind the last colon, or all that is said, and else 0. Case,
    punctuation around it and emphasis don't count.
    """
    if expected.strip().isdigit():
        numbers = [int(n.replace(",", "")) for n in _NUMBER.findall(said)]
        return _PARTIAL ** abs(int(expected) - numbers[-1]) if numbers else 0.0
    return float(_bare(expected) in (_bare(said), _bare(said.rpartition(":")[2])))


def _bare(text: str) -> str:
    return " ".join(re.sub(r"[*_`\"'\[\].!]", " ", text).casefold().split())
