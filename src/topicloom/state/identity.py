"""Is this message known, is it an edit, is it gone? Decided here and nowhere else.

Applications and other writers hand messages over again and again. A message is known if it has the
id of a stored one and says the same: `says_same`. `judge` answers for one message. The rest asks
for many of them:

| who hands them over | what answers |
|---|---|
| an application, in the `messages` channel | `select_unstored`, `find_new_messages`, `find_edit` |
| an application that sends all anew, without the ids | `align_ids`, then the same |
| an agent, whose state keeps all of them | `count_unchanged`, then the same |
| another writer of the session | `select_missing`, `map_numbers` |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from topicloom.errors import NoNewMessageError
from topicloom.state.messages import check_content, has_content, is_on_the_way
from topicloom.state.safe_text import digest_text
from topicloom.state.stored_message import (
    MARKS,
    REMOVED,
    StoredMessage,
    get_message_type,
    to_native,
    to_stored_message,
)
from topicloom.state.superseding import Edit

MessageStatus = Literal["new", "known", "edited", "gone", "empty"]
"""What a message is: of an unknown id; stored as it is; stored in other words; purged; or a user's
message that says nothing, which is never taken in."""


def make_message_key(message: BaseMessage) -> str:
    """Equal for messages that have one id and say the same, as JSON.

    A checkpoint holds "?" for what UTF-8 cannot hold, and so does the key.
    """
    calls = getattr(message, "tool_calls", [])
    said = [message.id, get_message_type(message), message.content, calls]
    if calls or not isinstance(message.content, str):
        said = to_native(said)
    text = json.dumps(said, sort_keys=True, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def says_same(message: BaseMessage, other: BaseMessage) -> bool:
    """True for messages that have one id and say the same: those of equal keys."""
    plain = all(
        isinstance(m.content, str) and not getattr(m, "tool_calls", ()) for m in (message, other)
    )
    same = plain and message.type == other.type and message.content == other.content
    return message.id == other.id and (same or make_message_key(message) == make_message_key(other))


def judge(message: BaseMessage, stored: Sequence[StoredMessage]) -> MessageStatus:
    """What a message is to the stored ones of its id.

    An id may stand for several: an application used it again, or edited what it named.
    """
    if not has_content(message):
        return "empty"
    if any(says_same(message, one.message) for one in stored):
        return "known"
    purged = any(one.text == REMOVED for one in stored)
    return "gone" if purged else "edited" if stored else "new"


def select_unstored(
    messages: Sequence[AnyMessage], recent: Sequence[StoredMessage]
) -> list[AnyMessage]:
    """The messages that are not in the transcript yet.

    An edited one counts as new: applications reuse ids, and nothing that was said may be lost. It
    stands in the channel where the other one stood, so places in the channel say nothing. One that
    is gone is not new, though the channel may still show it.
    """
    known: dict[str | None, list[StoredMessage]] = {}
    for stored in recent:
        known.setdefault(stored.source, []).append(stored)
    return [m for m in messages if judge(m, known.get(m.id, ())) in ("new", "edited")]


def find_new_messages(
    messages: Sequence[AnyMessage],
    recent: Sequence[StoredMessage],
    answer: bool = True,
    *,
    silent: bool = False,
) -> list[AnyMessage]:
    """The messages that a turn takes in.

    None of them if a message in the transcript still waits for its answer: it was sent again after
    a crash, or after a reply that failed. Tools that ran for it meanwhile stay in the loop. Raises
    `NoNewMessageError` if there is none, nothing waits and the turn may not be `silent`, and
    `InputError` if what there is to answer is empty.
    """
    check_content(messages)
    fresh = select_unstored(messages, recent)
    waits = _is_unanswered(messages, fresh, recent)
    if not (fresh or waits or silent):
        raise NoNewMessageError(
            "there is no new message: the input has none, or every id is part of the conversation"
            " already. To repeat a message, give it a new id, or none"
        )
    return [] if waits and answer else fresh


def _is_unanswered(
    messages: Sequence[AnyMessage], fresh: Sequence[AnyMessage], recent: Sequence[StoredMessage]
) -> bool:
    """True if the newest user message has had no answer yet, only tool calls if anything."""
    known = messages[: len(messages) - len(fresh)]
    if not (known and recent and recent[-1].role == "user" and known[-1].id == recent[-1].source):
        return False
    return all(map(is_on_the_way, fresh))


def find_edit(
    messages: Sequence[AnyMessage], shown: Sequence[StoredMessage], first: int, *, answer: bool
) -> tuple[Edit, list[AnyMessage]]:
    """What was edited, and the messages without those that are out of view by it.

    A message that is missing was removed; one that has other words was changed in its place. But
    where nothing else is new to `answer`, a user's message with other words is said anew: all that
    followed upon it goes.

    Args:
        messages: The channel.
        shown: The newest messages that are in view.
        first: Number from which on the channel showed all of them; 0 if that is not known.
    """
    by_id = {m.id: m for m in messages}
    last = {m.source: m for m in shown if m.source is not None}
    gone = {m.seq for m in shown if first and m.seq >= first and m.source and m.source not in by_id}
    other = [
        (m, by_id[source])
        for source, m in last.items()
        if source in by_id and judge(by_id[source], [m]) == "edited"
    ]
    again = max((m.seq for m, _ in other if m.role == "user"), default=0)
    new = {m.id for m in messages if has_content(m) and m.id not in last}
    # What a turn called and replied, which did not end, it did for what goes.
    waits = bool(shown) and shown[-1].role == "user"
    left = {m.id for m in messages if waits and m.id in new and not isinstance(m, HumanMessage)}
    if not (answer and again) or new - left:
        again, left = 0, set()
    else:
        gone |= {m.seq for m in shown if m.seq >= again}
    edit = Edit(
        removed=tuple(sorted(gone)),
        changed=tuple(
            to_stored_message(now, seq=m.seq, time=m.time).model_copy(
                update=m.model_dump(include=MARKS)
            )
            for m, now in other
            if m.seq not in gone
        ),
        again=again,
    )
    hidden = left | {m.source for m in shown if m.seq in gone and m.seq != again}
    return edit, [m for m in messages if m.id not in hidden]


def align_ids(messages: Sequence[AnyMessage], shown: Sequence[StoredMessage]) -> list[AnyMessage]:
    """A conversation that a client sent anew, under the ids that its messages had.

    Clients that keep no ids send the same words under others; these count as the same up to the
    first that says something else.
    """
    known, aligned = {m.source for m in shown}, list(messages)
    for place, (message, stored) in enumerate(zip(messages, shown, strict=False)):
        if message.id != stored.source:
            aligned[place] = message.model_copy(update={"id": stored.source})
            if message.id in known or judge(aligned[place], [stored]) not in ("known", "empty"):
                return [*aligned[:place], *messages[place:]]
    return aligned


def count_unchanged(messages: Sequence[AnyMessage], seen: Sequence[Any] | None) -> int:
    """How many messages stand at the beginning as they were `seen`; 0 if any of these changed."""
    count: int = seen[0] if seen else 0
    return count if mark_seen(messages[:count]) == list(seen or ()) else 0


def mark_seen(messages: Sequence[AnyMessage]) -> list[Any]:
    """What `count_unchanged` knows messages by: their number, and a digest of what they say."""
    said = [(m.id, m.type, m.content, getattr(m, "tool_calls", None)) for m in messages]
    described = repr(said).encode("utf-8", "replace")
    return [len(messages), hashlib.blake2b(described, digest_size=8).hexdigest()]


def select_missing(
    messages: Iterable[StoredMessage], held: Iterable[StoredMessage]
) -> list[StoredMessage]:
    """The messages that are not among those that are held, wherever they stand there."""
    known = {make_message_key(m.message) for m in held}
    return [m for m in messages if make_message_key(m.message) not in known]


def map_numbers(messages: Iterable[StoredMessage], held: Iterable[StoredMessage]) -> dict[int, int]:
    """The numbers that messages have among those that are held, by their own numbers."""
    known = {make_message_key(m.message): m.seq for m in held}
    return {m.seq: known[make_message_key(m.message)] for m in messages}


def digest(value: Any) -> str:
    """A digest of a value of JSON, in 24 hex digits."""
    return digest_text(json.dumps(value), 24)
