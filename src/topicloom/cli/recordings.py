"""Which recording is replayed."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from topicloom.errors import InputError
from topicloom.evaluation.conversations import Conversation, Question, load_conversations
from topicloom.evaluation.replay import exchanges, iso_time


def sample() -> Path:
    """The recording that ships with the package."""
    return min(Path(str(files("topicloom"))).joinpath("samples").glob("*.jsonl"))


def first_conversation(path: Path, limit: int | None) -> Conversation:
    """The first conversation of a file.

    Args:
        path: The file.
        limit: Messages at most; questions about the rest are left out.

    Raises:
        NotAConversationError: The file holds no conversation.
        InputError: No message of it has a text.
    """
    conversation = next(load_conversations(path))
    if limit is not None:
        conversation = _beginning(conversation, limit)
    if not exchanges(conversation):
        raise InputError(f"{path}: no message of conversation {conversation.id!r} has a text")
    return conversation


def place_of(question: Question, conversation: Conversation) -> int | None:
    """After how many messages a question is asked: by a message's id, or by a time.

    Returns:
        The number of messages heard before; None for the end.
    """
    if question.asked_at is None:
        return None
    by_id = question.asked_at in {message.id for message in conversation.messages}
    asked = None if by_id else _moment(question.asked_at)
    heard = 0
    for exchange in exchanges(conversation):
        said = _moment(exchange.said[0].time)
        later = asked is not None and said is not None and said > asked
        if later or question.asked_at in {message.id for message in exchange.said}:
            return heard
        heard += len(exchange)
    return None


def _moment(text: str | None) -> datetime | None:
    """A time to compare by; without a zone it counts as UTC."""
    try:
        found = datetime.fromisoformat(iso_time(text)) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


def _beginning(conversation: Conversation, limit: int) -> Conversation:
    messages = conversation.messages[:limit]
    known = {message.id for message in messages}
    all_ids = {message.id for message in conversation.messages}
    questions = tuple(
        question
        for question in conversation.questions
        if known.issuperset(question.evidence) and question.asked_at not in all_ids - known
    )
    return conversation.model_copy(update={"messages": messages, "questions": questions})
