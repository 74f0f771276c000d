"""Where conversations to measure on come from: files, or generators by name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from topicloom.evaluation.conversations import (
    Conversation,
    Question,
    RecordedMessage,
    load_conversations,
)
from topicloom.evaluation.generators import GENERATORS, generate
from topicloom.evaluation.replay import iso_time

SAMPLE = "sample"
"""The recording that ships with the package."""


def load_source(spec: str, folder: Path | None = None) -> Iterator[Conversation]:
    """The conversations of a source, one at a time.

    Args:
        spec: `sample`, a generator with its options (`sniah:tokens=100000,seed=1`), or a file of
            conversations.
        folder: What a relative path starts from; the current folder if None.

    Raises:
        NotAConversationError: If the file cannot be read or holds something else.
        InputError: If the generator does not take the options.
    """
    if is_generated(spec):
        return generate(spec)
    return load_conversations(_path(spec, folder))


def name_of(spec: str) -> str:
    """A source as tables name it: the file's name without folder and ending."""
    if is_generated(spec):
        return spec
    return Path(spec).name.removesuffix(".xz").removesuffix(".jsonl").removesuffix(".json")


def fingerprint(spec: str, folder: Path | None = None) -> str:
    """SHA-256 of a file; of a generator, of its specification, which settles what it makes."""
    data = spec.encode() if is_generated(spec) else _path(spec, folder).read_bytes()
    return sha256(data).hexdigest()


def is_generated(spec: str) -> bool:
    """Whether a source is a generator's."""
    return spec.partition(":")[0].strip() in GENERATORS


def place_of(question: Question, messages: tuple[RecordedMessage, ...]) -> int:
    """How many messages were said before a question is asked.

    Args:
        question: `asked_at` is the id of the message that asks it, or a time; all of the
            conversation was said before a question without.
        messages: The conversation.
    """
    asked = question.asked_at
    for place, message in enumerate(messages):
        if asked is not None and message.id == asked:
            return place
    moment = _moment(asked)
    if moment is not None:
        for place, message in enumerate(messages):
            said = _moment(message.time)
            if said is not None and said > moment:
                return place
    return len(messages)


def _path(spec: str, folder: Path | None) -> Path:
    if spec == SAMPLE:
        return min(Path(str(files("topicloom"))).joinpath("samples").glob("*.jsonl"))
    path = Path(spec).expanduser()
    return path if folder is None else folder / path


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(iso_time(text)) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None
